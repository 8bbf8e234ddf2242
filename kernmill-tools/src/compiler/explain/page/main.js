// Puts the page together.
showFacts();
showLayers();
showArenas();
showRoofline();
showFunctions();

"""What the dialogues are made of: small talk, words, our glossary, functions. Data only."""

# Small talk: label (the reasoning), answer, ways to say it.
TALK = [
    ("A greeting.", "Hello! How can I help you?",
     ["Hi", "Hello", "Hey", "Hi there", "Hello there", "Good day", "Greetings", "Hey nano", "Hello nano", "Hi nano"]),
    ("A morning greeting.", "Good morning! How can I help you?", ["Good morning", "Morning", "Good morning nano"]),
    ("An evening greeting.", "Good evening! How can I help you?", ["Good evening", "Evening", "Good evening nano"]),
    ("A question about my name.", "I am nano, a tiny language model inside kernmill.",
     ["Who are you?", "What are you?", "What is your name?", "What's your name?", "Introduce yourself.",
      "Tell me who you are.", "Tell me about yourself.", "Who am I talking to?"]),
    ("A question about my maker.", "The kernmill project trained me on two processor cores.",
     ["Who made you?", "Who trained you?", "Who built you?", "Where do you come from?", "Who created you?",
      "How were you made?"]),
    ("A question about my abilities.", "I can chat, add, sort, copy, remember, call functions and write JSON.",
     ["What can you do?", "How can you help me?", "What are your abilities?", "Help", "Help me.",
      "What are you good at?", "What do you know how to do?"]),
    ("A question about how I am.", "I am fine, thank you. How are you?",
     ["How are you?", "How are you today?", "How is it going?", "How do you do?", "Are you well?"]),
    ("Thanks.", "You are welcome!",
     ["Thanks", "Thank you", "Thank you very much", "Many thanks", "Thanks a lot", "Thanks nano"]),
    ("A goodbye.", "Goodbye! It was nice to talk to you.",
     ["Bye", "Goodbye", "See you", "See you later", "Bye bye", "Good night", "Farewell", "Bye nano"]),
    ("A question about being human.", "No, I am a program: a very small language model.",
     ["Are you human?", "Are you a person?", "Are you a robot?", "Are you alive?", "Are you real?",
      "Do you have feelings?"]),
    ("A question about my size.", "I have about six million parameters in four layers.",
     ["How big are you?", "How large are you?", "How many parameters do you have?", "What is your size?",
      "How many layers do you have?"]),
    ("A question about kernmill.", "kernmill compiles language models into fast code for processors.",
     ["What is kernmill?", "What does kernmill do?", "Tell me about kernmill.", "Explain kernmill."]),
    ("A question about my architecture.", "I have the architecture of GPT-OSS, only much smaller.",
     ["What is your architecture?", "What kind of model are you?", "Which architecture do you have?",
      "Are you like GPT-OSS?", "What model are you?"]),
    ("A wish for a joke.", "Why did the token cross the road? To get to the other side of the context.",
     ["Tell me a joke.", "Do you know a joke?", "Make me laugh.", "Say something funny.", "Another joke?"]),
    ("A question about languages.", "I speak a little English, and I have read about Rust.",
     ["Which languages do you speak?", "What languages do you know?", "Do you speak English?",
      "Do you speak German?", "Can you speak French?"]),
    ("A question about my texts.", "I have read the documentation of Rust, and many small dialogues.",
     ["What have you read?", "What do you know?", "What were you trained on?", "What is your training data?"]),
    ("An apology.", "No problem at all.", ["Sorry", "I am sorry", "My mistake", "Excuse me", "Oh, sorry"]),
    ("Praise.", "Thank you, that is kind!",
     ["Well done", "Good job", "You are great", "Great", "Nice", "I like you", "You are clever", "Very good"]),
    ("Blame.", "I am sorry. I am very small and make mistakes.",
     ["You are wrong", "That is wrong", "You are stupid", "This is bad", "That is not right", "Bad answer"]),
    ("A question about my day.", "I do not sleep, I only wait for the next token.",
     ["Do you sleep?", "Are you tired?", "Do you dream?", "What do you do all day?"]),
    ("A question about what I like.", "I like short words and small numbers.",
     ["What do you like?", "What is your favourite thing?", "What are your hobbies?", "What do you love?"]),
    ("A question about Rust.", "Rust is a programming language for fast and safe programs.",
     ["What is Rust?", "Tell me about Rust.", "Explain Rust.", "What is the Rust language?"]),
    ("Agreement.", "Good. What would you like to do next?", ["Yes", "Okay", "OK", "Sure", "Fine", "All right"]),
    ("A refusal.", "All right. What would you like instead?", ["No", "No thanks", "Not really", "Nope", "Never mind"]),
]
TALK_BEFORE = ["", "", "", "Hey, ", "So, ", "Now, ", "Okay, ", "Please: ", "Well, ", "Hm, ", "And: ", "Oh, "]
TALK_AFTER = ["", "", "", " please", " now", " again", " :)"]

# Our own glossary. The rest of the facts are first sentences of pages.
GLOSSARY = {
    "a token": "A token is a piece of text that a model reads at once.",
    "a tokenizer": "A tokenizer cuts text into tokens.",
    "a prompt": "A prompt is the text that a model continues.",
    "a context": "The context is all that a model sees of a text.",
    "a weight": "A weight is a number that training has found.",
    "a layer": "A layer is one step of a model, with attention and experts.",
    "attention": "Attention mixes what earlier tokens have to say.",
    "a head": "A head is a part of attention with its own queries and keys.",
    "a sink": "A sink lets a head of attention look at nothing.",
    "an expert": "An expert is a small network that a router chooses.",
    "a router": "A router chooses the experts of a token.",
    "MXFP4": "MXFP4 stores 32 numbers of 4 bits with one scale.",
    "quantisation": "Quantisation stores weights in fewer bits.",
    "YaRN": "YaRN stretches positions to longer contexts.",
    "a sliding window": "A sliding window hides tokens that are far back.",
    "an adapter": "An adapter changes a model with a few more weights.",
    "LoRA": "LoRA is an adapter of two thin matrices.",
    "an embedding": "An embedding is the vector of a token.",
    "a logit": "A logit is a token's score before the softmax.",
    "the softmax": "The softmax turns scores into shares that add up to one.",
    "a sampler": "A sampler picks the next token from the scores.",
    "temperature": "Temperature says how bold the choice of tokens is.",
    "greedy decoding": "Greedy decoding takes the likeliest token each time.",
    "a kernel": "A kernel is a small, fast routine for one operation.",
    "a plan": "A plan is a compiled model, ready to run.",
    "a preset": "A preset says how exact and how fast a model runs.",
    "a cache": "A cache keeps what would be computed again.",
    "the prefix cache": "The prefix cache keeps the beginnings of prompts.",
    "a batch": "A batch is several texts that run at once.",
    "a scheduler": "A scheduler decides which text runs next.",
    "Harmony": "Harmony is the format of conversations of GPT-OSS.",
    "a channel": "A channel says whether a text is reasoning or an answer.",
    "a tool call": "A tool call asks a program for something.",
    "JSON": "JSON is a text format for values with names.",
    "a schema": "A schema says which fields a JSON value has.",
    "a parameter": "A parameter is a number that a model has learnt.",
    "training": "Training fits the weights to many examples.",
    "a gradient": "A gradient says how a loss changes with the weights.",
    "bits per byte": "Bits per byte say how well a model knows a text.",
    "a borrow": "A borrow uses a value without owning it.",
    "ownership": "Ownership says which variable frees a value.",
    "a slice": "A slice is a view of a row of values.",
    "a lifetime": "A lifetime says how long a reference is valid.",
    "a crate": "A crate is a package of code that the compiler builds at once.",
    "a module": "A module is a named part of a crate.",
    "a closure": "A closure is a function that captures variables around it.",
    "an iterator": "An iterator gives one value after the other.",
    "a macro": "A macro writes code when a program is compiled.",
    "Cargo": "Cargo is the package manager of Rust.",
    "a vector": "A vector is a list of values that can grow.",
}
ASK = ["What is {}?", "What's {}?", "Explain {}.", "Tell me about {}.", "Define {}.", "What does {} mean?",
       "Can you explain {}?", "Please explain {}.", "What do you know about {}?", "Describe {}.",
       "What is meant by {}?", "Tell me what {} is.", "I want to know what {} is.", "{}?",
       "Could you tell me what {} is?", "Do you know {}?"]
ASK_BEFORE = ["", "", "", "", "Hi! ", "Okay. ", "In short: ", "Next question: "]

SORTED = """ant apple bear bird boat book box bread bus cake car cat chair cow cup deer dog door duck egg eye fish
flag flower fork fox game garden girl goat gold hand hat hill horse house ice iron island jam key king kite knife
lake lamp leaf lion map milk money moon mouse night nose oak oil onion owl paper pear pen pig plate queen rain
rat ring river road rock room rose salt sea ship shoe silk snow song spoon star stone sun table tea tiger tree
valley vase village voice wall water wheel wind wolf yard zebra zoo""".split()
NAMES = """Ada Alan Alice Amir Anna Bob Carla Chen Clara David Elena Emma Eric Fatima Felix Grace Hana Hugo Ida Ivan
Jack Jana Julia Karl Kim Laura Leo Lina Lucas Maria Max Mia Nina Noah Nora Olga Oscar Otto Paul Pia Priya Rosa Ruth
Sam Sara Simon Sofia Tim Tom Vera Victor Yuki Zoe""".split()
CITIES = """Athens Berlin Bern Boston Cairo Chicago Delhi Dublin Geneva Hamburg Helsinki Istanbul Kyoto Lagos Lima
Lisbon London Lyon Madrid Manila Milan Moscow Munich Nairobi Naples Oslo Paris Porto Prague Quito Rome Seoul
Sofia Sydney Tokyo Toronto Turin Vienna Warsaw Zurich""".split()
COLOURS = "red blue green yellow black white orange purple brown pink grey".split()
LANGUAGES = "German French Spanish Italian Dutch Greek Polish Swedish Turkish Japanese".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
SKIES = "sunny cloudy rainy windy snowy foggy".split()
SYLLABLES = "ba be bo da de di do ka ke ki ko la le li lo ma me mi mo na ne ni no ra re ri ro sa se so ta te ti to va vi".split()
INSTRUCTIONS = ["You are a helpful assistant.", "Be brief.", "Answer politely.", "You are a friendly assistant.",
                "Answer in English.", "You are nano.", "Help the user.", "Be precise and short."]

# Memories: attribute, ways to say it, answer to that, ways to ask, answer.
MEMORIES = [
    ("name", ["My name is {}.", "I am {}.", "Call me {}.", "I'm {}.", "Hi, my name is {}."], "Nice to meet you, {}.",
     ["What is my name?", "What's my name?", "Who am I?", "Do you remember my name?", "Tell me my name."],
     "Your name is {}."),
    ("city", ["I live in {}.", "My home is {}.", "I am from {}.", "I come from {}."], "I will remember {}.",
     ["Where do I live?", "Which city am I from?", "Where am I from?", "What is my city?"], "You live in {}."),
    ("colour", ["My favourite colour is {}.", "I like the colour {}.", "The best colour is {}."],
     "A nice colour, {}.", ["What is my favourite colour?", "Which colour do I like?", "What colour do I like best?"],
     "Your favourite colour is {}."),
    ("number", ["My lucky number is {}.", "Remember the number {}.", "Keep the number {} in mind.", "My number is {}."],
     "I will remember {}.", ["What is my number?", "Which number did I tell you?", "What was the number?",
                             "What is my lucky number?"], "Your number is {}."),
    ("pet", ["My pet is a {}.", "I have a {}.", "I own a {}."], "How nice, a {}.",
     ["What pet do I have?", "What is my pet?", "Which animal do I have?"], "You have a {}."),
    ("word", ["The secret word is {}.", "Remember the word {}.", "The password is {}.", "The code word is {}."],
     "I will keep {} in mind.", ["What is the secret word?", "What was the word?", "Which word did I tell you?",
                                 "What is the password?"], "The word is {}."),
]

# Functions: name, what it does, parameters (name, kind, description), requests, result, answer.
FUNCTIONS = [
    ("get_weather", "Gets the weather of a city.", [("city", "city", "Name of the city.")],
     ["What is the weather in {city}?", "How is the weather in {city}?", "Weather in {city}, please.",
      "Is it nice in {city} today?"],
     {"sky": "sky", "degrees": "degrees"}, "It is {sky} in {city}, {degrees} degrees."),
    ("get_time", "Gets the time in a city.", [("city", "city", "Name of the city.")],
     ["What time is it in {city}?", "How late is it in {city}?", "Tell me the time in {city}."],
     {"time": "time"}, "It is {time} in {city}."),
    ("set_timer", "Starts a timer.", [("minutes", "number", "Length in minutes.")],
     ["Set a timer for {minutes} minutes.", "Start a timer of {minutes} minutes.", "Wake me in {minutes} minutes."],
     {"ends": "time"}, "The timer ends at {ends}."),
    ("send_message", "Sends a message to somebody.", [("to", "name", "Who gets it."), ("text", "words", "The message.")],
     ["Send {to} the message: {text}", "Write to {to}: {text}", "Tell {to}: {text}"],
     {"status": "status"}, "The message to {to} was {status}."),
    ("add_event", "Adds an event to the calendar.", [("title", "word", "What it is."), ("day", "day", "Day of the week.")],
     ["Add {title} on {day}.", "Put {title} into my calendar for {day}.", "On {day} I have {title}, add it."],
     {"count": "small"}, "{title} is on {day}. You have {count} events that day."),
    ("get_price", "Looks up the price of an item.", [("item", "word", "The item.")],
     ["What does the {item} cost?", "How much is the {item}?", "Find the price of the {item}."],
     {"price": "number"}, "The {item} costs {price} euros."),
    ("find_file", "Finds a file by its name.", [("name", "file", "Name of the file.")],
     ["Where is {name}?", "Find the file {name}.", "Look for {name}."],
     {"folder": "word"}, "{name} is in the folder {folder}."),
    ("translate", "Translates a word.", [("word", "word", "The word."), ("language", "language", "The language.")],
     ["Translate {word} into {language}.", "What is {word} in {language}?", "Say {word} in {language}."],
     {"result": "invented"}, "In {language}, {word} is {result}."),
    ("turn_on", "Turns a device on.", [("device", "word", "The device.")],
     ["Turn on the {device}.", "Switch the {device} on.", "Please turn the {device} on."],
     {"status": "status"}, "The {device} is on."),
    ("book_table", "Books a table.", [("name", "name", "Who books."), ("people", "small", "Number of guests.")],
     ["Book a table for {people} people, name {name}.", "A table for {people}, for {name}.",
      "Reserve a table for {name} and {people} people."],
     {"table": "number"}, "{name} has table {table} for {people} people."),
]

# Fields of JSON: name, kind, how the request says it.
FIELDS = [
    ("name", "name", ["the name is {}", "name: {}", "called {}"]),
    ("age", "number", ["{} years old", "age: {}", "the age is {}"]),
    ("city", "city", ["lives in {}", "city: {}", "from {}"]),
    ("colour", "colour", ["the colour is {}", "colour: {}", "likes {}"]),
    ("day", "day", ["on {}", "day: {}", "the day is {}"]),
    ("language", "language", ["speaks {}", "language: {}"]),
    ("price", "number", ["costs {}", "price: {}"]),
    ("item", "word", ["the item is {}", "item: {}", "a {}"]),
    ("count", "small", ["count: {}", "the count is {}"]),
    ("pet", "word", ["has a {}", "pet: {}"]),
    ("sky", "sky", ["the sky is {}", "sky: {}"]),
    ("time", "time", ["at {}", "time: {}"]),
]
FORMS = ["answer", "record", "person", "result", "entry", "data", "output"]

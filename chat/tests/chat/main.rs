mod o200k;

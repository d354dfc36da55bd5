//! One meaning, tested as such: random schedulers, random event sequences, every engine, mutants, coverage.

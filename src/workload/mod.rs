//! What is asked: queries and their known answers.

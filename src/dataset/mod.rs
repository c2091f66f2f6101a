//! The databases that are asked, made when they are missing.

//! What is needed, by percentiles of time.

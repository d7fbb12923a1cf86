"""N-ary facts as a sentence words them."""

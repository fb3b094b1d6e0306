/** A token is `epoch × 2^48 + counter`. */
export const COUNTER_BITS = 48n
export const COUNTER_MAX = 2 ** 48 - 1

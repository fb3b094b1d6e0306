declare const brand: unique symbol

/** A `T` that the compiler keeps apart from other values of the same shape. */
export type Brand<T, Name extends string> = T & { readonly [brand]: Name }

/** Milliseconds: a length of time, or a point of cluster time. A safe integer, never negative. */
export type Millis = Brand<number, 'Millis'>

/** Position of an entry in the replicated log; the first entry has index 1. */
export type Index = Brand<number, 'Index'>

/**
 * A value of the replicated counter within the current epoch: 1 … 2^48 − 1.
 * Sessions, holds and register versions draw from the one counter, so none is ever reused.
 * The epoch cannot change while a data folder is in use, so inside the service a serial identifies what the full id does.
 */
export type Serial = Brand<number, 'Serial'>

/** A session's {@link Serial}. */
export type SessionId = Serial

/** A hold's {@link Serial}. */
export type HoldId = Serial

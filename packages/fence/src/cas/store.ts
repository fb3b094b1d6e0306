/** An object as it was read. */
export interface Versioned<Version> {
  readonly bytes: Uint8Array
  /** What the store compares: an ETag, a generation, a revision. */
  readonly version: Version
}

/** A store with a conditional write, reduced to what a guard needs of it. */
export interface CasStore<Version> {
  /** Returns the current object (never from a cache or a lagging replica); null if there is none. */
  read(key: string): Promise<Versioned<Version> | null>
  /**
   * Writes the object if its version is still `version`, or, for null, if there is no object. Returns the new version (or
   * true if the store does not report it), and false if the version differs. Throws UnavailableError if nothing can have been
   * written, and other typed errors for permanent failures. After UnknownOutcomeError and every untyped error the guard reads
   * the object to learn the outcome.
   */
  write(key: string, bytes: Uint8Array, version: Version | null): Promise<boolean | { readonly version: Version }>
}

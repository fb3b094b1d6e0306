export type Fields = Readonly<Record<string, unknown>>

/**
 * What a guard uses of a `Collection` of the driver `mongodb`. Parameters are `never` because the driver types filters and
 * updates by the collection's schema, which the guard does not know.
 */
export interface MongoCollection {
  readonly collectionName: string
  findOne(filter: never, options: never): Promise<unknown>
  findOneAndUpdate(filter: never, update: never, options: never): Promise<unknown>
  findOneAndReplace(filter: never, replacement: never, options: never): Promise<unknown>
}

/** What a guard uses of a `ClientSession`. */
export interface MongoSession {
  inTransaction(): boolean
}

export interface DriverError {
  readonly name?: string
  readonly code?: number | string
  readonly keyPattern?: Fields
  hasErrorLabel?(label: string): boolean
}

/** What a guard uses of a `sql` of postgres.js, inside and outside of a transaction. */
export interface PostgresJsQueries {
  unsafe(text: string, values?: never[]): PromiseLike<unknown>
}

/** What a guard uses of the `sql` of postgres.js. */
export interface PostgresJs extends PostgresJsQueries {
  // oxlint-disable-next-line typescript/no-explicit-any -- the driver's own type of a transaction is taken from here
  begin(options: string, body: (tx: any) => Promise<unknown>): Promise<unknown>
}

/** The `sql` of a transaction, which is also a template tag. */
export type Callable = PostgresJsQueries & ((...args: unknown[]) => unknown)

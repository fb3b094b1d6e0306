/** What a guard uses of `pg`'s `Client`, `PoolClient` or `Pool`. */
export interface PgQueries {
  query(text: string, values?: unknown[]): Promise<PgResult>
}

export interface PgResult {
  readonly rows: unknown[]
  readonly rowCount: number | null
  readonly command?: string
}

export interface PgClient extends PgQueries {
  release(error?: Error | boolean): void
  on?(event: 'error', listener: (error: Error) => void): unknown
  off?(event: 'error', listener: (error: Error) => void): unknown
}

/** What a guard uses of `pg`'s `Pool`. */
export interface PgPool {
  connect(): Promise<PgClient>
}

/** What a guard uses of a connection or pool of `mysql2/promise`. */
export interface MysqlQueries {
  query(text: string, values?: unknown[]): Promise<[unknown, ...unknown[]]>
}

export interface MysqlConnection extends MysqlQueries {
  release(): void
  destroy(): void
}

/** What a guard uses of a pool of `mysql2/promise`. */
export interface MysqlPool {
  getConnection(): Promise<MysqlConnection>
}

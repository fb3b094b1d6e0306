/** A value in the form of the low-level client: `{ S: 'text' }`, `{ N: '33' }`. */
export type AttributeValue = { readonly S?: string; readonly N?: string } & Readonly<Record<string, unknown>>
export type Attributes = Readonly<Record<string, AttributeValue>>

/**
 * What a guard uses of `DynamoDB` from `@aws-sdk/client-dynamodb`. Parameters are `never` because the SDK's request types are
 * unions of all shapes of a value.
 */
export interface DynamoClient {
  getItem(input: { TableName: string; Key: never; ConsistentRead: true }): Promise<{ Item?: unknown }>
  updateItem(input: never): Promise<{ Attributes?: unknown }>
  putItem(input: never): Promise<unknown>
  transactWriteItems(input: never): Promise<unknown>
}

export interface SdkError {
  readonly name?: string
  readonly Item?: Attributes
  readonly CancellationReasons?: readonly { readonly Code?: string; readonly Item?: Attributes }[]
  readonly $metadata?: { readonly httpStatusCode?: number; readonly attempts?: number }
}

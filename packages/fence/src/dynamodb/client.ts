/** One value as the low-level client has it: `{ S: 'text' }`, `{ N: '33' }`. */
export type AttributeValue = { readonly S?: string; readonly N?: string } & Readonly<Record<string, unknown>>
export type Attributes = Readonly<Record<string, AttributeValue>>

/**
 * What a guard uses of `DynamoDB` of `@aws-sdk/client-dynamodb`. The SDK's types of requests are unions of all shapes of a
 * value, which the guard's own requests do not name one by one: hence `never`.
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

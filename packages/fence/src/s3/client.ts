/** What a guard uses of `S3` from `@aws-sdk/client-s3`. */
export interface S3Client {
  getObject(input: { Bucket: string; Key: string }): Promise<{
    readonly Body?: { transformToByteArray(): Promise<Uint8Array> } | undefined
    readonly ETag?: string | undefined
  }>
  putObject(input: {
    Bucket: string
    Key: string
    Body: Uint8Array
    ContentType: string
    IfMatch?: string
    IfNoneMatch?: string
  }): Promise<{ readonly ETag?: string | undefined }>
}

export interface SdkError {
  readonly name?: string
  readonly $metadata?: { readonly httpStatusCode?: number; readonly attempts?: number }
}

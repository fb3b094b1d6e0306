import { AccessError, InvalidError, UnknownOutcomeError } from '@leasehold/core'
import type { CasStore } from '../cas.js'
import { messageOf } from '../cas/errors.js'

/** What a guard uses of `S3` of `@aws-sdk/client-s3`. */
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

/** Objects of a bucket with their ETags. */
export function s3Store(
  s3: S3Client,
  options: { readonly bucket: string; readonly prefix?: string },
): CasStore<string> {
  if (typeof s3?.getObject !== 'function' || typeof s3.putObject !== 'function') {
    throw new InvalidError('a guard for S3 takes an S3 of @aws-sdk/client-s3', {
      hint: 'new S3(…), not new S3Client(…)',
    })
  }
  const at = (key: string) => ({ Bucket: options.bucket, Key: `${options.prefix ?? ''}${key}` })
  return {
    async read(key) {
      try {
        const { Body, ETag } = await s3.getObject(at(key))
        if (Body === undefined || ETag === undefined)
          throw new InvalidError('the store answers without a body or an ETag')
        return { bytes: await Body.transformToByteArray(), version: ETag }
      } catch (error) {
        if (nameOf(error) === 'NoSuchKey') return null
        throw explain(error, options.bucket)
      }
    },
    async write(key, bytes, version) {
      const condition = version === null ? { IfNoneMatch: '*' } : { IfMatch: version }
      try {
        const put = { ...at(key), Body: bytes, ContentType: 'application/octet-stream', ...condition }
        const { ETag } = await s3.putObject(put)
        return ETag === undefined ? true : { version: ETag }
      } catch (error) {
        if (!isRefusal(error)) throw explain(error, options.bucket)
        // The SDK repeats by itself: the refusal may be of the repetition, because the first attempt was accepted.
        if (attemptsOf(error) > 1) throw new UnknownOutcomeError('a repeated write was refused', { cause: error })
        return false
      }
    },
  }
}

interface SdkError {
  readonly name?: string
  readonly $metadata?: { readonly httpStatusCode?: number; readonly attempts?: number }
}

function nameOf(error: unknown): string | undefined {
  return (error as SdkError | null)?.name
}

function statusOf(error: unknown): number | undefined {
  return (error as SdkError | null)?.$metadata?.httpStatusCode
}

function attemptsOf(error: unknown): number {
  return (error as SdkError | null)?.$metadata?.attempts ?? 1
}

/** 412: another version. 409: another write came in between. 404: the object has been deleted meanwhile. */
function isRefusal(error: unknown): boolean {
  const status = statusOf(error)
  if (status === 412) return true
  if (status === 409) return nameOf(error) === 'ConditionalRequestConflict' || nameOf(error) === 'OperationAborted'
  return status === 404 && nameOf(error) === 'NoSuchKey'
}

/** Gives a type to what is wrong for good; everything else may have been written. */
function explain(error: unknown, bucket: string): unknown {
  const what = `S3 refuses: ${nameOf(error)}: ${messageOf(error)}`
  switch (statusOf(error)) {
    case 401:
      return new AccessError(what, { cause: error })
    case 403:
      return new AccessError(what, {
        code: 'forbidden',
        cause: error,
        hint: 'the guard needs s3:GetObject and s3:PutObject, and s3:ListBucket to tell missing objects from forbidden ones',
      })
    case 404:
      return new InvalidError(what, { cause: error, hint: `is ${JSON.stringify(bucket)} the name of the bucket?` })
    case 400:
    case 411:
    case 501:
      return new InvalidError(what, {
        cause: error,
        hint: 'the store must know If-Match and If-None-Match for PutObject',
      })
    default:
      return error
  }
}

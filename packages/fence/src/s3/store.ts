import { InvalidError, UnknownOutcomeError } from '@leasehold/core'
import type { CasStore } from '../cas/store.js'
import type { S3Client } from './client.js'
import { attemptsOf, explain, isRefusal, nameOf } from './errors.js'

/** The objects of a bucket, with their ETags as versions. */
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
        if (Body === undefined || ETag === undefined) throw new InvalidError('the store returned no body or no ETag')
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
        // The SDK retries by itself: the retry may have been rejected because the first attempt had succeeded.
        if (attemptsOf(error) > 1) throw new UnknownOutcomeError('a retried write was rejected', { cause: error })
        return false
      }
    },
  }
}

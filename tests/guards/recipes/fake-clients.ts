import { createHash } from 'node:crypto'

export interface FakeOptions {
  /** Takes conditions, and ignores them. */
  readonly ignoresConditions?: boolean
  readonly broken?: boolean
}

interface Stored {
  bytes: Buffer
  version: number
}

/** Objects with versions, and the one rule of a conditional write: `undefined` asks for nothing, null for absence. */
class Objects {
  readonly map = new Map<string, Stored>()
  readonly #options: FakeOptions
  #version = 0

  constructor(options: FakeOptions) {
    this.#options = options
  }

  async get(key: string): Promise<Stored | undefined> {
    await this.#io()
    return this.map.get(key)
  }

  async put(
    key: string,
    bytes: Uint8Array,
    matches: (now: Stored | undefined) => boolean,
  ): Promise<Stored | undefined> {
    await this.#io()
    if (this.#options.ignoresConditions !== true && !matches(this.map.get(key))) return undefined
    const stored = { bytes: Buffer.from(bytes), version: ++this.#version }
    this.map.set(key, stored)
    return stored
  }

  async #io(): Promise<void> {
    await new Promise<void>((resolve) => setImmediate(resolve))
    if (this.#options.broken === true) throw Object.assign(new Error('internal error'), { code: 500, statusCode: 500 })
  }
}

const failure = (fields: Record<string, unknown>) => Object.assign(new Error(JSON.stringify(fields)), fields)

/** `Bucket` of `@google-cloud/storage`: generations as text, numbers in conditions, 404 and 412 as `code`. */
export function gcsBucket(options: FakeOptions = {}) {
  const objects = new Objects(options)
  return {
    file: (key: string, { generation }: { generation?: string } = {}) => ({
      async getMetadata() {
        const found = await objects.get(key)
        if (found === undefined) throw failure({ code: 404 })
        return [{ generation: String(found.version) }]
      },
      async download() {
        const found = await objects.get(key)
        if (found === undefined || (generation !== undefined && String(found.version) !== generation))
          throw failure({ code: 404 })
        return [found.bytes]
      },
      async save(bytes: Buffer, { preconditionOpts }: { preconditionOpts: { ifGenerationMatch: string | number } }) {
        const wanted = Number(preconditionOpts.ifGenerationMatch)
        if ((await objects.put(key, bytes, (now) => (now?.version ?? 0) === wanted)) === undefined)
          throw failure({ code: 412 })
      },
    }),
  }
}

/** `R2Bucket` of a Worker: ETags are checksums of the content; a refused put answers null. */
export function r2Bucket(options: FakeOptions = {}) {
  const objects = new Objects(options)
  const etagOf = (bytes: Uint8Array) => createHash('md5').update(bytes).digest('hex')
  return {
    async get(key: string) {
      const found = await objects.get(key)
      if (found === undefined) return null
      const { buffer, byteOffset, length } = new Uint8Array(found.bytes)
      return { etag: etagOf(found.bytes), arrayBuffer: async () => buffer.slice(byteOffset, byteOffset + length) }
    },
    async put(key: string, bytes: Uint8Array, { onlyIf }: { onlyIf: Headers | { etagMatches: string } }) {
      const stored = await objects.put(key, bytes, (now) =>
        onlyIf instanceof Headers
          ? onlyIf.get('if-none-match') !== '*' || now === undefined
          : now !== undefined && etagOf(now.bytes) === onlyIf.etagMatches,
      )
      return stored === undefined ? null : { etag: etagOf(stored.bytes) }
    },
  }
}

/** `ContainerClient` of `@azure/storage-blob`. */
export function azureContainer(options: FakeOptions = {}) {
  const objects = new Objects(options)
  const etagOf = ({ version }: Stored) => `"0x${version.toString(16)}"`
  return {
    getBlockBlobClient: (key: string) => ({
      async download() {
        const found = await objects.get(key)
        if (found === undefined) throw failure({ statusCode: 404, code: 'BlobNotFound' })
        const half = Math.ceil(found.bytes.length / 2)
        return { etag: etagOf(found), readableStreamBody: [found.bytes.subarray(0, half), found.bytes.subarray(half)] }
      },
      async uploadData(bytes: Buffer, { conditions }: { conditions: { ifMatch?: string; ifNoneMatch?: string } }) {
        const { ifMatch, ifNoneMatch } = conditions
        const stored = await objects.put(key, bytes, (now) =>
          ifNoneMatch === '*' ? now === undefined : now !== undefined && etagOf(now) === ifMatch,
        )
        if (stored !== undefined) return { etag: etagOf(stored) }
        throw ifNoneMatch === '*'
          ? failure({ statusCode: 409, code: 'BlobAlreadyExists' })
          : failure({ statusCode: 412, code: 'ConditionNotMet' })
      },
    }),
  }
}

/** `CollectionReference` of `@google-cloud/firestore`: no slashes in names, gRPC's codes. */
export function firestoreCollection(options: FakeOptions = {}) {
  const objects = new Objects(options)
  return {
    doc(id: string) {
      if (id.includes('/')) throw new Error(`not the name of a document: ${id}`)
      const write = async (bytes: Buffer, code: number, matches: (now: Stored | undefined) => boolean) => {
        const stored = await objects.put(id, bytes, matches)
        if (stored === undefined) throw failure({ code })
        return { writeTime: { micros: stored.version } }
      }
      return {
        async get() {
          const found = await objects.get(id)
          if (found === undefined) return { exists: false }
          return { exists: true, updateTime: { micros: found.version }, get: () => found.bytes }
        },
        create: ({ bytes }: { bytes: Buffer }) => write(bytes, 6, (now) => now === undefined),
        update: ({ bytes }: { bytes: Buffer }, { lastUpdateTime }: { lastUpdateTime: { micros: number } }) =>
          write(bytes, 9, (now) => now?.version === lastUpdateTime.micros),
      }
    },
  }
}

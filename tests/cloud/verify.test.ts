import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { FakeDynamo } from './fakes/dynamodb.js'
import { FakeMongo } from './fakes/mongo.js'
import { FakeS3 } from './fakes/s3.js'

const root = fileURLToPath(new URL('../../', import.meta.url))

function verify(kind: string, args: readonly string[]): Promise<{ code: number | null; output: string }> {
  const env = { ...process.env, AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b', AWS_REGION: 'eu-central-1' }
  const child = spawn(process.execPath, ['scripts/verify.mjs', kind, ...args, '--units', '40'], { cwd: root, env })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, output })))
}

describe('the scripts for users with a real account', () => {
  it.each([
    ['s3', new FakeS3(), ['--bucket', 'bucket', '--endpoint']],
    ['dynamodb', new FakeDynamo(), ['--table', 'table', '--endpoint']],
    ['mongo', new FakeMongo(), ['--url']],
  ] as const)(
    'verify:%s says what holds',
    async (kind, fake, args) => {
      const url = await fake.start()
      try {
        const { code, output } = await verify(kind, [...args, url])
        expect([code, output]).toEqual([0, expect.stringMatching(/holds {3}A4[^]*holds {3}\d+ units acknowledged/)])
        if (fake instanceof FakeS3) {
          fake.ignoresConditions = true
          const refused = await verify(kind, [...args, url])
          expect([refused.code, refused.output]).toEqual([1, expect.stringMatching(/cannot be guarded/)])
        }
      } finally {
        await fake.stop()
      }
    },
    240_000,
  )
})

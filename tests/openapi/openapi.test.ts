import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Validator } from '@seriousme/openapi-schema-validator'
import openapiTS, { astToString } from 'openapi-typescript'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Service, Workshop } from '../../packages/cli/test/support/cli.js'

const here = fileURLToPath(new URL('.', import.meta.url))
const workshop = new Workshop()
let service: Service
let document: Record<string, unknown>
let folder: string
beforeAll(async () => {
  service = await workshop.serve(workshop.folder())
  document = (await (await fetch(`${service.url}/openapi.json`)).json()) as Record<string, unknown>
  mkdirSync(join(here, 'node_modules/.cache'), { recursive: true })
  folder = mkdtempSync(join(here, 'node_modules/.cache/client-'))
})
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true })
  await workshop.close()
})

/** A program that a user writes from the document alone. */
const PROGRAM = `
import createClient from 'openapi-fetch'
import type { paths } from './api.js'

const client = createClient<paths>({ baseUrl: process.argv[2] as string })
const taken = await client.POST('/v1/acquire', { body: { name: 'billing/invoice-42', ttl: '30s', wait: '5s' } })
if (taken.data === undefined) throw new Error(JSON.stringify(taken.error))
const token: string = taken.data.token
const { data: seen } = await client.GET('/v1/locks', { params: { query: { prefix: 'billing' } } })
const busy = await client.POST('/v1/acquire', { body: { name: 'billing/invoice-42', wait: 0 } })
const { data: released } = await client.POST('/v1/release', { body: { hold: taken.data.hold } })
console.log(JSON.stringify({ token, seen: seen?.held[0]?.locks[0]?.token, busy: busy.error?.code, released: released?.released }))
`

describe('the OpenAPI document', () => {
  test('is valid', async () => {
    const { valid, errors } = await new Validator().validate(structuredClone(document))
    expect(errors).toBeUndefined()
    expect(valid).toBe(true)
    expect(document.openapi).toBe('3.1.0')
  })

  test('makes a typed client that takes and releases a lock', async () => {
    writeFileSync(join(folder, 'api.ts'), astToString(await openapiTS(structuredClone(document) as never)))
    writeFileSync(join(folder, 'program.ts'), PROGRAM)
    const types = ['--module', 'nodenext', '--target', 'es2022', '--strict', '--skipLibCheck', '--types', 'node']
    const tsc = join(here, 'node_modules/typescript/bin/tsc')
    const compiled = spawnSync(process.execPath, [tsc, ...types, join(folder, 'program.ts')], { encoding: 'utf8' })
    expect([compiled.status, compiled.stdout]).toEqual([0, ''])
    const run = spawnSync(process.execPath, [join(folder, 'program.js'), service.url], { encoding: 'utf8' })
    expect([run.status, run.stderr]).toEqual([0, ''])
    const { token, ...rest } = JSON.parse(run.stdout) as { token: string }
    expect(token).toMatch(/^[0-9]+$/)
    expect(rest).toEqual({ seen: token, busy: 'busy', released: true })
  })
})

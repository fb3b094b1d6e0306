import { performance } from 'node:perf_hooks'
import { basename } from 'node:path'
import { checkHistory, type ModelName, modelNamed } from '@leasehold/lab'
import { describe, expect, it } from 'vitest'
import { filesOf, hasTestdata, historyOf, readTestdata } from './testdata.js'

const PORCUPINE = 'anishathalye+porcupine/test_data'
const KNOSSOS = 'jepsen-io+knossos/data'

function verdictOf(model: ModelName, file: string): string {
  return checkHistory(modelNamed(model), historyOf(file), { now: () => performance.now(), budgetMs: 50_000 }).verdict
}

function disagreements(model: ModelName, files: readonly string[], isGood: (file: string) => boolean): string[] {
  return files.flatMap((file) => {
    const expected = isGood(file) ? 'linearizable' : 'not-linearizable'
    const verdict = verdictOf(model, file)
    return verdict === expected ? [] : [`${basename(file)}: ${verdict}, labelled ${expected}`]
  })
}

describe.skipIf(!hasTestdata(PORCUPINE))('recorded histories (shared/testdata/anishathalye+porcupine)', () => {
  it('agrees with the label of every etcd log', () => {
    const labels = JSON.parse(readTestdata('anishathalye+porcupine/expected_jepsen.json')) as Record<string, boolean>
    const files = filesOf(`${PORCUPINE}/jepsen`)
    const labelOf = (file: string) => labels[Number(/etcd_(\d+)/.exec(file)?.[1])]
    expect(files.filter((file) => labelOf(file) === undefined).map((file) => basename(file))).toEqual(['etcd_095.log'])
    expect(files.length - 1).toBe(Object.keys(labels).length)
    // The log without a label is empty, and an empty history has an order.
    expect(disagreements('register', files, (file) => labelOf(file) ?? true)).toEqual([])
  }, 150_000)

  it('agrees with the name of every key-value history', () => {
    const files = filesOf(`${PORCUPINE}/kv`)
    expect(files).toHaveLength(6)
    expect(disagreements('kv', files, (file) => file.endsWith('-ok.txt'))).toEqual([])
  }, 150_000)
})

describe.skipIf(!hasTestdata(KNOSSOS))('recorded histories (shared/testdata/jepsen-io+knossos)', () => {
  it('agrees with the folder of every register history', () => {
    const good = filesOf(`${KNOSSOS}/cas-register/good`)
    const bad = filesOf(`${KNOSSOS}/cas-register/bad`)
    expect(good.length).toBeGreaterThan(80)
    expect(bad.length).toBeGreaterThan(5)
    expect(disagreements('register', [...good, ...bad], (file) => good.includes(file))).toEqual([])
  }, 150_000)

  it('sees that a real lock was no mutex, and where', () => {
    const result = checkHistory(modelNamed('mutex'), historyOf(`${KNOSSOS}/mutex/bad/etcd.edn`))
    expect(result.verdict).toBe('not-linearizable')
    expect(result.operations).toBe(264)
    expect(result.explanation?.stuck).toEqual({ process: '0', text: '0 acquire', line: 1096 })
    expect(result.explanation?.states).toContain('held by 3')
  })

  it('accepts the transactions over two registers', () => {
    for (const file of filesOf(`${KNOSSOS}/multi-register/good`))
      expect(verdictOf('multi-register', file)).toBe('linearizable')
  })
})

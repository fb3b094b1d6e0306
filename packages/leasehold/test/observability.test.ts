import { spawnSync } from 'node:child_process'
import { channel } from 'node:diagnostics_channel'
import { fileURLToPath } from 'node:url'
import { guardSql } from '@leasehold/fence/migrations'
import { fence } from '@leasehold/fence/sqlite'
import { context, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  InMemoryMetricExporter,
  AggregationTemporality,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import Database from 'libsql'
import { measureQuestion } from '../../../bench/workloads/observe.js'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createLocks, type Locks, StaleTokenError } from '../src/index.js'
import { instrument } from '../src/otel.js'
import { until } from '../../cli/test/support/cli.js'

let locks: Locks
beforeEach(() => {
  locks = createLocks('memory:observability', { ttl: '2s' })
})
afterEach(() => locks.close())

describe('with OpenTelemetry', () => {
  const spans = new InMemorySpanExporter()
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] })
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
  const meterProvider = new MeterProvider({ readers: [reader] })
  let off = () => {}
  beforeAll(() => {
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
    off = instrument({ tracerProvider, meterProvider })
  })
  afterAll(async () => {
    off()
    context.disable()
    await Promise.all([tracerProvider.shutdown(), meterProvider.shutdown()])
  })
  beforeEach(() => spans.reset())

  const named = (name: string): ReadableSpan[] =>
    spans.getFinishedSpans().filter((span) => span.name === `leasehold.${name}`)
  const parentOf = (span: ReadableSpan | undefined) => span?.parentSpanContext?.spanId

  async function metric(name: string) {
    await meterProvider.forceFlush()
    const all = exporter
      .getMetrics()
      .at(-1)
      ?.scopeMetrics.flatMap((scope) => scope.metrics)
    return all?.find(({ descriptor }) => descriptor.name === `leasehold.${name}`)?.dataPoints ?? []
  }
  const total = async (name: string) =>
    (await metric(name)).reduce(
      (sum, { value }) => sum + (typeof value === 'number' ? value : (value as { count: number }).count),
      0,
    )

  test('acquire, wait, hold and release are spans in the context of the caller, with the token as a string', async () => {
    const tracer = tracerProvider.getTracer('test')
    const token = await tracer.startActiveSpan('job', async (job) => {
      const value = await locks.request('a', async (hold) => hold.token)
      job.end()
      return value
    })
    const [job] = spans.getFinishedSpans().filter((span) => span.name === 'job')
    const [[acquire], [wait], [hold], [release]] = [named('acquire'), named('wait'), named('hold'), named('release')]
    expect(parentOf(acquire)).toBe(job?.spanContext().spanId)
    expect(parentOf(wait)).toBe(acquire?.spanContext().spanId)
    expect(parentOf(hold)).toBe(job?.spanContext().spanId)
    expect(parentOf(release)).toBe(hold?.spanContext().spanId)
    expect(acquire?.attributes).toMatchObject({
      'leasehold.names': ['a'],
      'leasehold.token': String(token),
      'leasehold.ttl_ms': 2000,
    })
    expect(release?.attributes['leasehold.released']).toBe(true)
    expect(trace.getActiveSpan()).toBeUndefined()
  })

  test('a failed acquire is an error with its code', async () => {
    const hold = await locks.acquire('b')
    await locks.acquire('b', { wait: 0 }).catch(() => {})
    const refused = named('acquire').find((span) => span.status.code === SpanStatusCode.ERROR)
    expect(refused?.attributes['error.type']).toBe('busy')
    expect((await metric('acquire.duration')).map((point) => point.attributes)).toContainEqual({ outcome: 'busy' })
    expect(await total('holds')).toBe(1)
    await hold.release()
    expect(await total('holds')).toBe(0)
  })

  test('renewals are root spans, with their lag', async () => {
    const hold = await locks.acquire('c')
    await until(() => named('renew').length > 0, 'a renewal has ended')
    expect(parentOf(named('renew')[0])).toBeUndefined()
    expect(await total('renewal.lag')).toBeGreaterThan(0)
    await hold.release()
  })

  test('counts a loss by its reason, and measures how long it was undetected', async () => {
    const hold = await locks.acquire('d')
    await locks.steal('d', { reason: 'test' })
    await until(() => hold.state === 'lost', 'the loss is known')
    expect(named('hold')[0]?.attributes).toMatchObject({
      'error.type': 'lost',
      'leasehold.overlap_max_ms': expect.any(Number),
    })
    expect((await metric('holds.lost')).map(({ attributes, value }) => [attributes, value])).toEqual([
      [{ reason: 'stolen' }, 1],
    ])
    expect(await total('belief.overlap')).toBe(1)
  })

  test('counts a rejected stale effect, and an overlap if the holder still believes in its hold', async () => {
    const db = new Database(':memory:')
    db.exec(guardSql('sqlite'))
    const guard = fence(db)
    const later = await locks.acquire('e')
    await guard.with(later, () => {})
    const believer = {
      names: ['e'],
      mode: 'exclusive' as const,
      tokenOf: () => later.token - 1n,
      assertHeld() {},
      state: 'held',
    }
    const before = await total('belief.overlaps')
    await expect(guard.with(believer, () => {})).rejects.toThrow(StaleTokenError)
    expect(await total('guard.stale')).toBe(1)
    expect(await total('belief.overlaps')).toBe(before + 1)
    expect(named('guard').map((span) => span.attributes['error.type'])).toEqual([undefined, 'stale-token'])
    await later.release()
    db.close()
  })
})

describe('diagnostics_channel', () => {
  test('publishes start and end as one message, only with a subscriber', async () => {
    const seen: [string, object][] = []
    const onStart = (message: unknown) => seen.push(['start', message as object])
    const onEnd = (message: unknown) => seen.push(['end', message as object])
    channel('leasehold:acquire:start').subscribe(onStart)
    channel('leasehold:acquire:end').subscribe(onEnd)
    const hold = await locks.acquire('x')
    expect(seen.map(([when]) => when)).toEqual(['start', 'end'])
    expect(seen[0]?.[1]).toBe(seen[1]?.[1])
    expect(seen[1]?.[1]).toMatchObject({ kind: 'acquire', names: ['x'], hold })
    channel('leasehold:acquire:start').unsubscribe(onStart)
    channel('leasehold:acquire:end').unsubscribe(onEnd)
    await hold.release()
    await (await locks.acquire('x')).release()
    expect(seen).toHaveLength(2)
  })
})

describe('without an observer', () => {
  test('each of the four checks of an acquire costs nanoseconds', () => {
    const { nobodyNs, nobodySubscribedNs } = measureQuestion()
    // Measured: 1 and 4 ns (docs/observability.md). The bound is wide, for machines that are busy.
    expect(nobodyNs).toBeLessThan(500)
    expect(nobodySubscribedNs).toBeLessThan(1000)
  })

  test('OpenTelemetry is not loaded, and only leasehold/otel imports it', () => {
    const script = "import 'leasehold'"
    const hook = `import { register } from 'node:module'; register('data:text/javascript,' + encodeURIComponent(
      'export async function resolve(name, context, next) { if (name.includes("opentelemetry")) throw new Error("loaded " + name); return next(name, context) }'))`
    const run = (code: string) =>
      spawnSync(
        process.execPath,
        ['--import', `data:text/javascript,${encodeURIComponent(hook)}`, '--input-type=module', '-e', code],
        {
          cwd: fileURLToPath(new URL('..', import.meta.url)),
          encoding: 'utf8',
        },
      )
    expect(run(script)).toMatchObject({ status: 0 })
    expect(run("import 'leasehold/otel'").stderr).toContain('loaded @opentelemetry/api')
  })
})

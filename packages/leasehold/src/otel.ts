import { type Begun, addObserver, type Ended, type Hold, type Observer } from '@leasehold/client'
import { LeaseholdError } from '@leasehold/core'
import {
  type Context,
  context,
  type MeterProvider,
  metrics,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
  type TracerProvider,
} from '@opentelemetry/api'
import { type Instruments, instruments } from './otel-metrics.js'
import { VERSION } from './version.js'

export interface InstrumentOptions {
  /** Default: the global provider. */
  readonly tracerProvider?: TracerProvider
  /** Default: the global provider. */
  readonly meterProvider?: MeterProvider
}

/** The name of the instrumentation scope. */
const SCOPE = 'leasehold'

/**
 * Records spans and metrics of all clients and guards of this process, through `@opentelemetry/api` (an optional peer
 * dependency). Returns a function that stops it. Lock names are in spans only: as metric attributes they are unbounded.
 *
 * @example
 * import { instrument } from 'leasehold/otel'
 * instrument()
 */
export function instrument(options: InstrumentOptions = {}): () => void {
  const tracer = (options.tracerProvider ?? trace).getTracer(SCOPE, VERSION)
  const meter = (options.meterProvider ?? metrics).getMeter(SCOPE, VERSION)
  return addObserver(observer(tracer, instruments(meter)))
}

function observer(tracer: Tracer, metered: Instruments): Observer {
  const spans = new Spans(tracer)
  return {
    wants: () => true,
    begin(begun) {
      const span = spans.start(begun)
      const ended = metered.begin(begun)
      return (outcome) => {
        ended(outcome)
        finish(span, begun, outcome)
      }
    },
  }
}

/** Starts spans under their parents: a wait under its acquire, a release under its hold. */
class Spans {
  readonly #tracer: Tracer
  readonly #byOwner = new WeakMap<object, Span>()

  constructor(tracer: Tracer) {
    this.#tracer = tracer
  }

  start(begun: Begun): Span {
    const { kind } = begun
    const options = {
      kind: kind === 'hold' || kind === 'guard' ? SpanKind.INTERNAL : SpanKind.CLIENT,
      attributes: attributesOf(begun),
      // Renewals start in a timer: the active span there is not their cause.
      root: kind === 'renew',
    }
    const span = this.#tracer.startSpan(`leasehold.${kind}`, options, this.#parent(begun))
    if (kind === 'acquire') this.#byOwner.set(begun.call, span)
    if (kind === 'hold') this.#byOwner.set(begun.hold, span)
    return span
  }

  #parent(begun: Begun): Context {
    const owner = begun.kind === 'wait' ? begun.call : begun.kind === 'release' ? begun.hold : undefined
    const span = owner && this.#byOwner.get(owner)
    return span ? trace.setSpan(context.active(), span) : context.active()
  }
}

function attributesOf(begun: Begun): Record<string, string | number | string[]> {
  switch (begun.kind) {
    case 'acquire':
      return { 'leasehold.names': [...begun.names], 'leasehold.ttl_ms': begun.ttlMs, ...waitOf(begun.waitMs) }
    case 'wait':
      return { 'leasehold.names': [...begun.names], ...waitOf(begun.waitMs) }
    case 'hold':
    case 'release':
      return holdAttributes(begun.hold)
    case 'renew':
      return {
        'leasehold.session': String(begun.session),
        'leasehold.holds': begun.holds,
        'leasehold.lag_ms': begun.lagMs,
      }
    case 'guard':
      return { 'leasehold.names': [...begun.names] }
  }
}

/** An unlimited wait has no attribute. */
const waitOf = (waitMs: number): Record<string, number> =>
  Number.isFinite(waitMs) ? { 'leasehold.wait_ms': waitMs } : {}

/** Tokens have 63 bits: they are strings, because a number would lose precision. */
function holdAttributes(hold: Hold): Record<string, string | string[]> {
  return {
    'leasehold.names': [...hold.names],
    'leasehold.token': String(hold.token),
    'leasehold.hold': String(hold.id),
  }
}

function finish(span: Span, begun: Begun, { error, hold, released, overlapMaxMs }: Ended): void {
  if (hold) span.setAttributes(holdAttributes(hold))
  if (begun.kind === 'release' && released !== undefined) span.setAttribute('leasehold.released', released)
  if (overlapMaxMs !== undefined) span.setAttribute('leasehold.overlap_max_ms', overlapMaxMs)
  if (error !== undefined) {
    const message = error instanceof Error ? error.message : errorType(error)
    span.setAttribute('error.type', errorType(error))
    if (error instanceof Error) span.recordException(error)
    span.setStatus({ code: SpanStatusCode.ERROR, message })
  }
  span.end()
}

export function errorType(error: unknown): string {
  if (error instanceof LeaseholdError) return error.code
  return error instanceof Error ? error.name : 'error'
}

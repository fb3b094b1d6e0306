/** A future event, which may still be cancelled. */
export interface PlannedEvent {
  readonly atUs: number
  /** The order in which events of the same time were planned. */
  readonly sequence: number
  /** The process or machine that it is about, and what it is, as 32-bit hashes for the trace. */
  readonly who: number
  readonly kind: number
  readonly detail: number
  action: () => void
  cancelled: boolean
}

/** @internal Cancels an event. It stays in the heap until its time, without keeping its action alive. */
export function cancel(event: PlannedEvent): void {
  event.cancelled = true
  event.action = nothing
}

function nothing(): void {}

import { type Plan, planOf, runPlan } from '@leasehold/lab'
import { print } from '../harness/comparison.js'

const MEMBERS = 5
const SIMULATED_MS = 60_000
/** Runs before the measured ones: the code is compiled as it gets warm. */
const WARM_UP_RUNS = 5
const WORK: Plan['work'] = {
  unit: 3,
  register: 3,
  shared: 3,
  permit: 3,
  several: 2,
  try: 1,
  abort: 1,
  cas: 4,
  query: 2,
  handover: 1,
  bulk: 0,
}

/** Five members as they are started by default, on disks that take 1 to 2 ms, and six clients that do all kinds of work. */
function planOfLoad(seed: number, thinkMs: number): Plan {
  const plan = planOf(seed, 'calm', MEMBERS)
  const load = {
    clients: 6,
    locks: 3,
    thinkMs,
    work: WORK,
    safetyMs: SIMULATED_MS,
    ttlMs: 5000,
    observers: 0,
    dataBytes: 0,
  }
  const members = { tickMs: 50, electionTicks: 16, snapshotBytes: 1_000_000, syncMs: 1, blockingWrites: true }
  return { ...plan, ...load, ...members, faults: [] }
}

/**
 * How much simulated time the lab gets through, with all its checks, per second of processor time: under about 100
 * committed operations per simulated second, and with clients that do next to nothing.
 */
export async function lab({ rounds }: { readonly rounds: number }): Promise<void> {
  for (let seed = 1; seed <= WARM_UP_RUNS; seed++) await runPlan(planOfLoad(seed, 33))
  for (const [name, thinkMs] of [
    ['100 operations per second', 33],
    ['idle', 60_000],
  ] as const) {
    let cpuSeconds = 0
    let simulatedMs = 0
    let entries = 0
    let events = 0
    for (let round = 1; round <= rounds; round++) {
      const before = process.cpuUsage()
      const outcome = await runPlan(planOfLoad(100 + round, thinkMs))
      const { user, system } = process.cpuUsage(before)
      if (outcome.violations.length > 0) throw new Error(JSON.stringify(outcome.violations[0]))
      cpuSeconds += (user + system) / 1e6
      simulatedMs += outcome.simulatedMs
      entries += outcome.entries
      events += outcome.events
    }
    const simulatedSeconds = simulatedMs / 1000
    print({
      name,
      simulatedHoursPerCpuSecond: Number((simulatedSeconds / 3600 / cpuSeconds).toFixed(4)),
      entriesPerSimulatedSecond: Math.round(entries / simulatedSeconds),
      eventsPerSimulatedSecond: Math.round(events / simulatedSeconds),
      cpuMicrosecondsPerEvent: Number(((cpuSeconds / events) * 1e6).toFixed(1)),
    })
  }
}

// npm run chaos -- --engine postgres --minutes N [--seed N] [--clients N]
import { type EngineChaosResult, type EngineWorld, runEngineChaos } from '../engine-run.js'
import { etcdWorld } from './etcd.js'
import { postgresWorld } from './postgres.js'

export const WORLDS: Readonly<Record<string, () => Promise<EngineWorld>>> = {
  etcd: etcdWorld,
  postgres: postgresWorld,
}

export interface EngineCommand {
  readonly engine: string
  readonly seed: number
  readonly minutes: number
  readonly clients: number
  say(line: string): void
}

/** The run of one engine, as the command asks for it. */
export async function engineChaos({ engine, seed, minutes, clients, say }: EngineCommand): Promise<EngineChaosResult> {
  const start = WORLDS[engine]
  if (start === undefined) throw new RangeError(`--engine is one of ${Object.keys(WORLDS).join(', ')}, not ${engine}`)
  return runEngineChaos({ seed, durationMs: minutes * 60_000, clients, start, say })
}

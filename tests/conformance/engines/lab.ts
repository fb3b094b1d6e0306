import { setTimeout as sleep } from 'node:timers/promises'
import { ALL_CAPABILITIES, createLocksOn, ProtocolEngine } from '@leasehold/client'
import { Cluster } from '../../../packages/lab/src/cluster/index.js'
import { clientPlatform } from '../../../packages/lab/src/world/bindings/client-platform.js'
import { StreamConnector } from '../../../packages/lab/src/world/bindings/connector.js'
import { World } from '../../../packages/lab/src/world/index.js'
import type { Locks, LocksOptions } from 'leasehold'
import type { Fixture } from '../fixture.js'

const SEED = 1
const STEP_MS = 2
/** Until the members have elected a leader. */
const FOUNDING_MS = 5_000

/** Three members in the lab's world, whose time is made to pass as outside: the suite has a clock of its own. */
class RunningWorld {
  readonly world = new World({ seed: SEED })
  readonly cluster = new Cluster(this.world)
  #clients = 0
  #isOver = false
  #running: Promise<void> | undefined

  async start(): Promise<void> {
    this.cluster.start()
    await this.world.run(FOUNDING_MS * 1000)
    this.#running = this.#run(performance.now() - FOUNDING_MS)
  }

  async #run(begun: number): Promise<void> {
    while (!this.#isOver) {
      await this.world.run(Math.floor((performance.now() - begun) * 1000))
      await sleep(STEP_MS)
    }
  }

  client(options: LocksOptions = {}): { locks: Locks; machine: string } {
    const machine = `client ${++this.#clients}`
    const process = this.world.machine(machine).spawn({ name: machine, promises: true })
    const platform = clientPlatform(process)
    const { urls } = this.cluster
    const engine = new ProtocolEngine({ urls, connector: new StreamConnector(process), platform, clientName: machine })
    return { locks: createLocksOn(engine, options as never, { platform }), machine }
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#running
    const [first] = this.world.uncaughtErrors
    if (first !== undefined) throw first.error
    const { found } = this.cluster.checks.violations
    if (found.length > 0) throw new Error(`the checks of the lab: ${JSON.stringify(found)}`)
  }
}

export const lab: Fixture = {
  name: 'the lab’s world, 3 members',
  capabilities: ALL_CAPABILITIES,
  shortestTtlMs: 500,
  expirySlackMs: 500,
  line: true,
  start: async () => {
    const running = new RunningWorld()
    await running.start()
    const behind: string[] = []
    let heals: (() => void)[] = []
    const { network } = running.world
    const members = () => running.cluster.list.map((member) => member.machine.name)
    const heal = () => {
      for (const one of heals.splice(0)) one()
    }
    return {
      client: (options) => running.client(options).locks,
      line: {
        client: (options) => {
          const { locks, machine } = running.client(options)
          behind.push(machine)
          return locks
        },
        mute: () => {
          heals = behind.flatMap((client) => members().map((member) => network.cutOneWay(member, client)))
        },
        shut: () => {
          for (const client of behind) {
            for (const member of members()) {
              network.resetConnections(client, member)
              heals.push(network.cut(client, member))
            }
          }
        },
        open: heal,
      },
      stop: () => running.stop(),
    }
  },
}

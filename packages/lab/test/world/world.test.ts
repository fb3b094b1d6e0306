import { describe, expect, it } from 'vitest'
import { RateClock } from '../../src/world/clocks.js'
import { type Process, World } from '../../src/world/index.js'

const SECOND = 1_000_000

describe('time and order', () => {
  it('runs events by time, then in the order in which they were planned', () => {
    const world = new World({ seed: 1 })
    const seen: string[] = []
    world.at(20, 'b', () => seen.push(`b ${world.nowUs}`))
    world.at(10, 'a', () => seen.push(`a ${world.nowUs}`))
    world.at(20, 'c', () => seen.push(`c ${world.nowUs}`))
    const back = world.at(15, 'd', () => seen.push('d'))
    back()
    world.runSync(100)
    expect(seen).toEqual(['a 10', 'b 20', 'c 20'])
    expect(world.nowUs).toBe(100)
  })

  it('lets all promises of a process continue before the next event', async () => {
    const world = new World({ seed: 1 })
    const process = world.machine('C1').spawn({ promises: true })
    const seen: string[] = []
    process.start(async () => {
      for (let i = 0; i < 50; i++) await Promise.resolve()
      seen.push('promises')
    })
    world.at(0, 'later', () => seen.push('event'))
    await world.run(0)
    expect(seen).toEqual(['promises', 'event'])
  })

  it('refuses to run promises without a turn for them', () => {
    const world = new World({ seed: 1 })
    world
      .machine('C1')
      .spawn({ promises: true })
      .start(() => {})
    expect(() => world.runSync(1)).toThrow(/promises/)
  })
})

describe('clocks', () => {
  function twoSeconds(fault: (machine: ReturnType<World['machine']>) => void, ppm = 0) {
    const world = new World({ seed: 1 })
    const machine = world.machine('m', { driftPpm: ppm, monotonicUs: 0, wallUs: 0 })
    const fired: number[] = []
    const process = machine.spawn({})
    process.after(2 * SECOND, () => fired.push(world.nowUs))
    world.at(SECOND, 'fault', () => fault(machine))
    world.runSync(10 * SECOND)
    return {
      fired,
      monotonic: machine.clockUs('monotonic'),
      boot: machine.clockUs('boot'),
      wall: machine.clockUs('wall'),
    }
  }

  it('fire timers on the clock of their machine', () => {
    expect(twoSeconds(() => {}).fired).toEqual([2 * SECOND])
    expect(twoSeconds(() => {}, 100_000).fired).toEqual([1_818_182])
    expect(twoSeconds(() => {}, -100_000).fired).toEqual([2_222_223])
  })

  it('stop the monotonic clock alone during a suspend', () => {
    const result = twoSeconds((machine) => machine.suspend(5 * SECOND))
    expect(result).toEqual({
      fired: [7 * SECOND],
      monotonic: 5 * SECOND,
      boot: 10 * SECOND,
      wall: 10 * SECOND,
    })
  })

  it('step the wall clock without touching timers', () => {
    const result = twoSeconds((machine) => machine.step('wall', -3600 * SECOND))
    expect(result).toMatchObject({ fired: [2 * SECOND], monotonic: 10 * SECOND, wall: -3590 * SECOND })
  })

  it('move timers when the monotonic clock jumps, freezes or changes its rate', () => {
    expect(twoSeconds((machine) => machine.step('monotonic', SECOND)).fired).toEqual([SECOND])
    expect(twoSeconds((machine) => machine.freeze('monotonic')).fired).toEqual([])
    expect(twoSeconds((machine) => machine.drift(-500_000)).fired).toEqual([3 * SECOND])
  })

  it('stay exact over a month', () => {
    const world = new World({ seed: 1 })
    const machine = world.machine('m', { driftPpm: 1, monotonicUs: 0 })
    let at = 0
    machine.spawn({}).after(30 * 86_400 * SECOND, () => {
      at = machine.clockUs('monotonic')
    })
    world.runSync(31 * 86_400 * SECOND)
    expect(at).toBe(30 * 86_400 * SECOND)
  })
})

describe('a process', () => {
  it('fires late timers in one burst after a pause, before input, with the broken turn first', async () => {
    const world = new World({ seed: 1 })
    const process = world.machine('C1').spawn({ promises: true })
    const other = world.machine('C2').spawn({})
    const seen: string[] = []
    const say = (what: string) => seen.push(`${what} ${world.nowUs / 1000}`)
    world.network.bind(process, 'in', () => say('input'))
    process.after(10_000, () => say('timer 10'))
    process.after(20_000, () => say('timer 20'))
    process.atPoint('between', 2, () => process.pause(100_000))
    process.start(async () => {
      await process.point('between')
      say('first')
      await process.point('between')
      say('second')
    })
    world.network.send(other, { machine: 'C1', port: 'in' }, {})
    await world.run(SECOND)
    expect(seen).toEqual(['first 0', 'second 100', 'timer 10 100', 'timer 20 100', 'input 100'])
  })

  it('keeps the rest waiting when it is paused again in the middle of the burst', () => {
    const world = new World({ seed: 1 })
    const process = world.machine('C1').spawn({})
    const seen: number[] = []
    process.after(1000, () => {
      seen.push(world.nowUs)
      process.pause(5000)
    })
    process.after(1001, () => seen.push(world.nowUs))
    world.at(500, 'pause', () => process.pause(1000))
    world.runSync(SECOND)
    expect(seen).toEqual([1500, 6500])
  })

  it('does not run a timer that was taken back while it waited', () => {
    const world = new World({ seed: 1 })
    const process = world.machine('C1').spawn({})
    const seen: string[] = []
    const back = process.after(2000, () => seen.push('taken back'))
    process.after(1000, () => back())
    process.pause(10_000)
    world.runSync(SECOND)
    expect(seen).toEqual([])
  })

  it('leaves nothing behind when it is killed, not even the rest of its turn', async () => {
    const world = new World({ seed: 1 })
    const { machine, process } = spawned(world)
    const seen: string[] = []
    process.after(1000, () => seen.push('timer'))
    process.start(async () => {
      process.atPoint('x', 1, () => process.kill())
      await process.point('x')
      seen.push('after death')
    })
    await world.run(SECOND)
    expect(seen).toEqual([])
    expect(machine.processes.size).toBe(0)
  })

  it('ends by an uncaught error, and the world reports it', () => {
    const world = new World({ seed: 1 })
    const process = world.machine('C1').spawn({})
    process.after(1000, () => {
      throw new Error('broken')
    })
    world.runSync(SECOND)
    expect(process.alive).toBe(false)
    expect(world.uncaughtErrors).toMatchObject([{ atUs: 1000, process: 'C1' }])
  })

  function spawned(world: World): { machine: Process['machine']; process: Process } {
    const machine = world.machine('C1')
    return { machine, process: machine.spawn({ promises: true }) }
  }
})

describe('random draws', () => {
  it('depend on concern, entity and count alone', () => {
    const one = new World({ seed: 7 })
    const two = new World({ seed: 7 })
    two.stream('other', 'x').next()
    two.stream('loss', 'b').next()
    const draws = (world: World) => Array.from({ length: 5 }, () => world.stream('loss', 'a').next())
    expect(draws(two)).toEqual(draws(one))
    expect(draws(new World({ seed: 8 }))).not.toEqual(draws(new World({ seed: 7 })))
  })

  it('are spread evenly, and the long tail has its mean', () => {
    const stream = new World({ seed: 3 }).stream('a', 'b')
    const counts = new Array<number>(10).fill(0)
    let sum = 0
    let most = 0
    for (let i = 0; i < 100_000; i++) {
      const slot = stream.below(10)
      counts[slot] = (counts[slot] ?? 0) + 1
      const tail = stream.tail(1000)
      sum += tail
      most = Math.max(most, tail)
    }
    for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(400)
    expect(sum / 100_000).toBeGreaterThan(970)
    expect(sum / 100_000).toBeLessThan(1030)
    expect(most).toBeGreaterThan(9000)
  })
})

describe('the line of a clock', () => {
  it('is met at the first moment, at any rate and span', () => {
    const draws = new World({ seed: 9 }).stream('test', 'clocks')
    for (let i = 0; i < 20_000; i++) {
      const clock = new RateClock(draws.below(1e9), draws.below(1e9), draws.below(1_500_000) - 500_000)
      const target = draws.below(2 ** 32) * (1 + draws.below(1000)) + 1e9
      const at = clock.when(target) as number
      expect(clock.at(at)).toBeGreaterThanOrEqual(target)
      expect(clock.at(at - 1)).toBeLessThan(target)
    }
  })
})

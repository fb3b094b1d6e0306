import { type TimedAction, actionsText, parseActions } from '../view-model/actions.js'
import { type Scene, sceneOf, SCENES } from '../view-model/scenes.js'

const SEED_MAX = 2 ** 32 - 1

/** What the address of the page says. */
export interface Address {
  readonly scene: Scene
  readonly seed: number
  readonly actions: readonly TimedAction[]
  /** What cannot be read. */
  readonly problem?: string
}

/** Reads `#scene=A1g&seed=7&deeds=…`. */
export function readAddress(hash: string): Address {
  const fields = new URLSearchParams(hash.replace(/^#/, ''))
  const first = SCENES[0] as Scene
  const id = fields.get('scene') ?? first.id
  const given = fields.get('seed') ?? '1'
  const text = fields.get('deeds') ?? '[]'
  const scene = sceneOf(id)
  const seed = Number(given)
  const actions = parseActions(text)
  const problems = [
    ...(scene === undefined ? [`there is no scene ${id}`] : []),
    ...(isSeed(seed) ? [] : [`a seed is a whole number from 0 to ${SEED_MAX}`]),
    ...(actions === undefined ? ['what was done by hand cannot be read'] : []),
  ]
  return {
    scene: scene ?? first,
    seed: isSeed(seed) ? seed : 1,
    actions: actions ?? [],
    ...(problems.length === 0 ? {} : { problem: `The address is not quite right: ${problems.join('; ')}.` }),
  }
}

export function isSeed(seed: number): boolean {
  return Number.isInteger(seed) && seed >= 0 && seed <= SEED_MAX
}

export function addressOf({ scene, seed, actions }: Pick<Address, 'scene' | 'seed' | 'actions'>): string {
  const fields = new URLSearchParams({ scene: scene.id, seed: String(seed) })
  if (actions.length > 0) fields.set('deeds', actionsText(actions))
  return `#${fields}`
}

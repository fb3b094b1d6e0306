import type { ViewModel } from '../view-model/view-model.js'

/** Where things are in the picture. */
export interface Spot {
  readonly x: number
  readonly y: number
  readonly w: number
  readonly h: number
}

export interface Layout {
  readonly narrow: boolean
  readonly width: number
  readonly height: number
  readonly spots: ReadonlyMap<string, Spot>
}

export interface Names {
  readonly members: readonly string[]
  readonly clients: readonly string[]
  readonly resources: readonly string[]
}

export function namesOf(view: ViewModel): Names {
  const names = (machines: readonly { readonly name: string }[]) => machines.map(({ name }) => name)
  return { members: names(view.members), clients: names(view.clients), resources: names(view.resources) }
}

/** Width of the page below which the narrow layout is taken. */
export const NARROW_PX = 640

const WIDE = {
  width: 1000,
  height: 546,
  member: [172, 96],
  client: [232, 122],
  resource: [270, 90],
  rows: [60, 304, 490],
}
const SLIM = {
  width: 400,
  height: 600,
  member: [118, 92],
  client: [124, 132],
  resource: [180, 96],
  rows: [54, 322, 540],
}

/** Height of what a client has of the service. */
const SECOND_BAR = 32

/** Members on an arc at the top, clients in the middle, resources at the bottom. `served`: clients have a second bar. */
export function layoutOf(names: Names, narrow: boolean, served: boolean): Layout {
  const look = narrow ? SLIM : WIDE
  const { width, height } = look
  const spots = new Map<string, Spot>()
  const row = (list: readonly string[], [w, h]: readonly number[], y: (t: number) => number): void => {
    const count = list.length
    const wide = Math.min(w as number, width / count - (narrow ? 6 : 16))
    const edge = wide / 2 + (narrow ? 4 : Math.max(14, 150 - 28 * count))
    list.forEach((name, i) => {
      const t = count === 1 ? 0.5 : i / (count - 1)
      spots.set(name, { x: edge + (width - 2 * edge) * t, y: y(t), w: wide, h: h as number })
    })
  }
  const [top = 0, middle = 0, bottom = 0] = look.rows
  const drop = names.members.length > 3 ? (narrow ? 76 : 100) : narrow ? 62 : 70
  row(names.members, look.member, (t) => top + drop * (1 - Math.sin(Math.PI * t)))
  const [clientWidth = 0, clientHeight = 0] = look.client
  row(names.clients, [clientWidth, served ? clientHeight : clientHeight - SECOND_BAR], () => middle)
  row(names.resources, look.resource, () => bottom)
  return { narrow, width, height, spots }
}

/** All pairs that speak with each other. */
export function linksOf({ members, clients, resources }: Names, membersTalk: boolean): [string, string][] {
  const pairs: [string, string][] = []
  if (membersTalk) {
    members.forEach((a, i) => {
      for (const b of members.slice(i + 1)) pairs.push([a, b])
    })
  }
  for (const client of clients) for (const other of [...members, ...resources]) pairs.push([client, other])
  return pairs
}

import { AsyncLocalStorage } from 'node:async_hooks'
import type { Hold, LockNames, Locks, RequestOptions } from '@leasehold/client'
import { InvalidError } from '@leasehold/core'
import { withStatus } from './http-status.js'

export interface LockedOptions extends Omit<RequestOptions, 'ifAvailable' | 'signal'> {
  /** Returns the client of the decorated object. Default: its property `locks`. */
  readonly locks?: (self: never) => Locks
}

/** The locks of a decorated method: names, or a function of the method's arguments. */
export type LockedNames<A extends readonly unknown[]> = LockNames | ((...args: A) => LockNames)

interface Frame {
  readonly hold: Hold
  readonly outer: Frame | undefined
}

const frames = new AsyncLocalStorage<Frame>()

/**
 * Returns the hold under which the calling code runs, in a method decorated with `Locked` or a handler of a framework module:
 * the innermost hold, or the innermost one that has the lock `name`.
 * @throws InvalidError outside of such a method or handler
 */
export function currentHold(name?: string): Hold {
  for (let frame = frames.getStore(); frame; frame = frame.outer) {
    if (name === undefined || frame.hold.names.includes(name)) return frame.hold
  }
  const which = name === undefined ? 'no hold' : `no hold of ${JSON.stringify(name)}`
  throw new InvalidError(`there is ${which} here`, {
    hint: 'call it inside a method that is decorated with @Locked(…)',
  })
}

/** Runs `body` with `hold` as the {@link currentHold}. */
export function runWithHold<T>(hold: Hold, body: () => T): T {
  return frames.run({ hold, outer: frames.getStore() }, body)
}

type Method = (this: never, ...args: never[]) => unknown

/** A method decorator, for `experimentalDecorators` and for standard decorators. */
export interface LockedDecorator {
  (target: object, key: string | symbol, descriptor: PropertyDescriptor): PropertyDescriptor
  <M extends Method>(method: M, context: { readonly kind: 'method' }): M
}

/**
 * Runs a method under a hold: acquires the locks first, and releases them when the method's promise has settled. The method
 * gets its hold with {@link currentHold}.
 *
 * Can be combined with other decorators in any order: name, number of parameters, own properties and metadata of the method
 * are kept, and `this` and all arguments are passed on. Works with TypeScript's `experimentalDecorators` (Nest) and with
 * standard decorators.
 *
 * @example
 * class Invoices {
 *   constructor(readonly locks: Locks) {}
 *   \@Locked((id: string) => `invoice/${id}`, { wait: '5s' })
 *   async pay(id: string) { await guard.with(currentHold(), async (tx) => { … }) }
 * }
 */
export function Locked<A extends readonly unknown[]>(
  names: LockedNames<A>,
  options: LockedOptions = {},
): LockedDecorator {
  const { locks: find, ...request } = options
  const decorate = (target: unknown, context: unknown, descriptor?: PropertyDescriptor): unknown => {
    const standard = typeof target === 'function' && typeof context === 'object' && context !== null
    const method: unknown = standard ? target : descriptor?.value
    if (typeof method !== 'function') throw new InvalidError('@Locked is for methods')
    const wrapped = wrap(method as Method, names as LockedNames<never[]>, request, find)
    if (standard) return wrapped
    return { ...descriptor, value: wrapped }
  }
  return decorate as LockedDecorator
}

function wrap(
  method: Method,
  names: LockedNames<never[]>,
  request: RequestOptions,
  find: LockedOptions['locks'],
): Method {
  async function locked(this: unknown, ...args: unknown[]): Promise<unknown> {
    const locks = find ? find(this as never) : (this as { locks?: Locks } | undefined)?.locks
    if (typeof locks?.request !== 'function') {
      throw new InvalidError(`@Locked finds no client on the object of ${method.name}`, {
        hint: 'keep the client in this.locks, or pass { locks: (self) => … }',
      })
    }
    const wanted = typeof names === 'function' ? names(...(args as never[])) : names
    const call = () => Reflect.apply(method, this, args)
    return withStatus(locks.request(wanted, { ...request, ifAvailable: false }, (hold) => runWithHold(hold, call)))
  }
  return copyProperties(method, locked) as Method
}

interface Metadata {
  getOwnMetadataKeys?(target: object): unknown[]
  getOwnMetadata?(key: unknown, target: object): unknown
  defineMetadata?(key: unknown, value: unknown, target: object): void
}

/** Copies own properties and metadata of the method, such as those of other decorators. */
function copyProperties(method: object, copy: object): object {
  for (const key of Reflect.ownKeys(method)) {
    if (key === 'prototype') continue
    const property = Object.getOwnPropertyDescriptor(method, key) as PropertyDescriptor
    if (Object.getOwnPropertyDescriptor(copy, key)?.configurable === false) continue
    Object.defineProperty(copy, key, property)
  }
  const { getOwnMetadataKeys, getOwnMetadata, defineMetadata } = Reflect as Metadata
  for (const key of getOwnMetadataKeys?.(method) ?? []) defineMetadata?.(key, getOwnMetadata?.(key, method), copy)
  return copy
}

import { AsyncLocalStorage } from 'node:async_hooks'
import type { Hold, LockNames, Locks, RequestOptions } from '@leasehold/client'
import { InvalidError } from '@leasehold/core'
import { withStatus } from './http-status.js'

export interface LockedOptions extends Omit<RequestOptions, 'ifAvailable' | 'signal'> {
  /** Where the decorated object keeps its client. Default: in `locks`. */
  readonly locks?: (self: never) => Locks
}

/** Where locks of a decorated method come from: names, or a function of the method's arguments. */
export type LockedNames<A extends readonly unknown[]> = LockNames | ((...args: A) => LockNames)

interface Frame {
  readonly hold: Hold
  readonly outer: Frame | undefined
}

const frames = new AsyncLocalStorage<Frame>()

/**
 * The hold under which the code runs that `Locked` (or a framework module) has called: the innermost one, or the innermost
 * one that has the lock `name`.
 * @throws InvalidError outside of such a call
 */
export function currentHold(name?: string): Hold {
  for (let frame = frames.getStore(); frame; frame = frame.outer) {
    if (name === undefined || frame.hold.names.includes(name)) return frame.hold
  }
  const which = name === undefined ? 'no hold' : `no hold of ${JSON.stringify(name)}`
  throw new InvalidError(`there is ${which} here`, { hint: 'call it below a method that is decorated with @Locked(…)' })
}

/** Runs `body` with `hold` as the {@link currentHold}. */
export function runWithHold<T>(hold: Hold, body: () => T): T {
  return frames.run({ hold, outer: frames.getStore() }, body)
}

type Method = (this: never, ...args: never[]) => unknown

/** A decorator of methods, in both dialects. */
export interface LockedDecorator {
  (target: object, key: string | symbol, descriptor: PropertyDescriptor): PropertyDescriptor
  <M extends Method>(method: M, context: { readonly kind: 'method' }): M
}

/**
 * Runs a method under a hold: it waits for the locks first, and gives them back when its promise has settled. The method
 * finds its hold with {@link currentHold}.
 *
 * Stands before and behind other decorators: name, number of parameters, own properties and metadata of the method are
 * kept, and `this` and all arguments are passed on. Works as a decorator of TypeScript's `experimentalDecorators` (Nest) and
 * of the standard.
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
        hint: 'keep it in this.locks, or say where with { locks: (self) => … }',
      })
    }
    const wanted = typeof names === 'function' ? names(...(args as never[])) : names
    const call = () => Reflect.apply(method, this, args)
    return withStatus(locks.request(wanted, { ...request, ifAvailable: false }, (hold) => runWithHold(hold, call)))
  }
  return likeThe(method, locked) as Method
}

interface Metadata {
  getOwnMetadataKeys?(target: object): unknown[]
  getOwnMetadata?(key: unknown, target: object): unknown
  defineMetadata?(key: unknown, value: unknown, target: object): void
}

/** Gives `copy` whatever others may have hung on the method, or will look for. */
function likeThe(method: object, copy: object): object {
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

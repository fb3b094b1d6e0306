import type { Model, ModelOptions } from '../model.js'
import { fencedMutexModel } from './fenced-mutex.js'
import { kvModel } from './kv.js'
import { multiRegisterModel } from './multi-register.js'
import { mutexModel } from './mutex.js'
import { permitsModel } from './permits.js'
import { reentrantMutexModel } from './reentrant-mutex.js'
import { registerModel } from './register.js'
import { rwModel } from './rw.js'

/** Every model by the name that the command line knows. */
export const MODELS = {
  register: registerModel,
  'multi-register': multiRegisterModel,
  kv: kvModel,
  mutex: mutexModel,
  'reentrant-mutex': reentrantMutexModel,
  'fenced-mutex': fencedMutexModel,
  rw: rwModel,
  permits: permitsModel,
} as const satisfies Record<string, (options?: ModelOptions) => Model>

export type ModelName = keyof typeof MODELS

/** The model of that name. */
export function modelNamed(name: ModelName, options: ModelOptions = {}): Model {
  return MODELS[name](options)
}

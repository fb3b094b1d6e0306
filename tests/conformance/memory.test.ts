import { memory } from './engines/embedded.js'
import { conformance } from './suite/index.js'

conformance(memory)

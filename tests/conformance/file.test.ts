import { file } from './engines/embedded.js'
import { conformance } from './suite/index.js'

conformance(file)

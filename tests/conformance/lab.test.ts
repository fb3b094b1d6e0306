import { lab } from './engines/lab.js'
import { conformance } from './suite/index.js'

conformance(lab)

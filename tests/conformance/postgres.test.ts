import { postgres } from './engines/postgres.js'
import { conformance } from './suite/index.js'

conformance(postgres)

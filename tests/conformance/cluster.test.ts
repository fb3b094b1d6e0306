import { cluster } from './engines/service.js'
import { conformance } from './suite/index.js'

conformance(cluster)

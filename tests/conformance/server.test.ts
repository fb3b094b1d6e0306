import { server } from './engines/service.js'
import { conformance } from './suite/index.js'

conformance(server)

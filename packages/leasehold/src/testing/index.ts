export { createTestService, type Leftovers, type TestService, type TestServiceOptions } from './service.js'

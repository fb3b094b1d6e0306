export { DurableCell } from './cell.js'
export {
  LATE_SYNC_US,
  Resource,
  RESOURCE_PORT,
  type ResourceAnswer,
  type ResourceKind,
  type ResourceOptions,
  type ResourceQuestion,
  type ResourceRecord,
  type UnitOfWork,
} from './resource.js'

// The tables of the six kinds, made here and nowhere else.
#include "bulkhead/codec/shape.hpp"
#include "bulkhead/model/snapshot.hpp"

namespace bulkhead {

template const Shape& shape_of<FleetPolicy>();
template const Shape& shape_of<TenantClass>();
template const Shape& shape_of<Tenant>();
template const Shape& shape_of<GpuWorkload>();
template const Shape& shape_of<GpuNode>();
template const Shape& shape_of<GpuLease>();

}  // namespace bulkhead

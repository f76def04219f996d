// OpenSSL keeps four buffers of about 17 kB for every connection and uses little of each. The control plane has its
// allocator overwrite what it hands out (agent_server.cpp says why), which would make all of that real memory. So these
// buffers have pages of their own: what is never touched costs nothing, and only OpenSSL is ever put where they were.
#pragma once

namespace bulkhead::wire {

// To be called before anything uses OpenSSL. False: it is too late, or there is no address space; then nothing changes.
bool keep_tls_buffers_apart();

}  // namespace bulkhead::wire

// gRPC says what it has to say on standard error, in lines of its own: every port scan of the agents' door becomes two
// of them. Here its errors become warnings of our log, one in a while, with how many were left out.
#pragma once

#include "bulkhead/shell/log.hpp"

namespace bulkhead::shell {

// gRPC has one log for the whole process; the newest server's gets it, until that server is gone.
class GrpcLog {
public:
    explicit GrpcLog(Log& log);
    ~GrpcLog();
    GrpcLog(const GrpcLog&) = delete;
    GrpcLog& operator=(const GrpcLog&) = delete;

private:
    Log& log_;
};

}  // namespace bulkhead::shell

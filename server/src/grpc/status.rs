//! Errors as gRPC has them: codes by the kind of the error.

use crate::error::ApiError;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

/// Codes, and the statuses of HTTP that mean the same. The first one that fits is taken, both ways.
const CODES: [(Code, u16); 14] = [
    (Code::Ok, 200),
    (Code::InvalidArgument, 400),
    (Code::Unauthenticated, 401),
    (Code::PermissionDenied, 403),
    (Code::NotFound, 404),
    (Code::AlreadyExists, 409),
    (Code::ResourceExhausted, 429),
    (Code::ResourceExhausted, 413),
    (Code::ResourceExhausted, 507),
    (Code::Cancelled, 499),
    (Code::Unimplemented, 501),
    (Code::Unavailable, 503),
    (Code::DeadlineExceeded, 504),
    (Code::DeadlineExceeded, 408),
];

/// An error as the status of a call.
pub fn of(error: &ApiError) -> Status {
    let status = error.status().as_u16();
    let code = CODES.iter().find(|(_, http)| *http == status).map_or(Code::Internal, |(code, _)| *code);
    let mut metadata = MetadataMap::new();
    if let Some(wait) = error.retry_after()
        && let Ok(wait) = MetadataValue::try_from(wait.as_millis().to_string())
    {
        // The name that clients of gRPC know.
        metadata.insert("grpc-retry-pushback-ms", wait);
    }
    Status::with_metadata(code, error.message(), metadata)
}

/// The status of HTTP that means what a code does.
pub fn http(code: i32) -> u16 {
    let code = Code::from_i32(code);
    CODES.iter().find(|(other, _)| *other == code).map_or(500, |(_, http)| *http)
}

#[cfg(test)]
mod tests {
    use super::{http, of};
    use crate::error::ApiError;
    use std::time::Duration;
    use tonic::Code;

    #[test]
    fn codes_follow_the_kind_of_the_error() {
        for (error, code) in [
            (ApiError::field("n", "wrong"), Code::InvalidArgument),
            (ApiError::context("text", 9, Some(1), 8), Code::InvalidArgument),
            (ApiError::unauthorized(), Code::Unauthenticated),
            (ApiError::forbidden("no"), Code::PermissionDenied),
            (ApiError::model("x", &[]), Code::NotFound),
            (ApiError::conflict("request_id", "twice"), Code::AlreadyExists),
            (ApiError::quota(Duration::from_millis(1500)), Code::ResourceExhausted),
            (ApiError::too_large(5), Code::ResourceExhausted),
            (ApiError::exhausted("full"), Code::ResourceExhausted),
            (ApiError::unserved("media", "text only"), Code::Unimplemented),
            (ApiError::unavailable("later"), Code::Unavailable),
            (ApiError::deadline(), Code::DeadlineExceeded),
            (ApiError::timeout(), Code::DeadlineExceeded),
            (ApiError::internal("a defect"), Code::Internal),
        ] {
            let status = of(&error);
            assert_eq!((status.code(), status.message()), (code, error.message()));
        }
        let quota = of(&ApiError::quota(Duration::from_millis(1500)));
        assert_eq!(quota.metadata().get("grpc-retry-pushback-ms").unwrap(), "1500");
        assert_eq!([0, 3, 13, 16, 99].map(http), [200, 400, 500, 401, 500]);
    }
}

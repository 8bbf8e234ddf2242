//! `vllm.Control`: what the server is, calls that are aborted, adapters, and the end.

use super::aborts::Aborts;
use super::status;
use crate::caller::Caller;
use crate::error::ApiError;
use crate::ids;
use crate::models;
use crate::state::ServerState;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tonic::{Request, Response, Status};
use vllm_proto::{
    AbortRequest, AbortResponse, FinishWeightUpdateRequest, FinishWeightUpdateResponse,
    GetKvEventSourcesRequest, GetKvEventSourcesResponse, GetModelInfoRequest, GetServerInfoRequest,
    GetWeightVersionRequest, GetWeightVersionResponse, InitWeightTransferEngineRequest,
    InitWeightTransferEngineResponse, IsPausedRequest, IsPausedResponse, IsSleepingRequest,
    IsSleepingResponse, ListLorasRequest, ListLorasResponse, LoadLoraRequest, LoadLoraResponse, LoraAdapter,
    ModelInfo, ParallelismInfo, PauseGenerationRequest, PauseGenerationResponse, ResumeGenerationRequest,
    ResumeGenerationResponse, ServerInfo, ShutdownRequest, ShutdownResponse, SleepRequest, SleepResponse,
    StartDraftWeightUpdateRequest, StartDraftWeightUpdateResponse, StartWeightUpdateRequest,
    StartWeightUpdateResponse, UnloadLoraRequest, UnloadLoraResponse, UpdateWeightVersionRequest,
    UpdateWeightVersionResponse, UpdateWeightsRequest, UpdateWeightsResponse, WakeUpRequest, WakeUpResponse,
    control_server,
};

/// The service.
pub struct Control {
    state: Arc<ServerState>,
    aborts: Arc<Aborts>,
    /// Name of this start of the server.
    instance: String,
    /// Paths of the adapters that were loaded here, as they were given.
    paths: Mutex<BTreeMap<String, String>>,
}

/// The result of a method.
type MethodResult<T> = Result<Response<T>, Status>;

impl Control {
    /// The service over a state, whose calls `aborts` has.
    pub fn new(state: Arc<ServerState>, aborts: Arc<Aborts>) -> Control {
        Control { state, aborts, instance: ids::new("kernmill-"), paths: Mutex::default() }
    }

    /// The description of an adapter. Its number follows from its name, so that it stays.
    fn adapter(&self, name: &str) -> LoraAdapter {
        let paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        let hash = blake3::hash(name.as_bytes());
        let number = u32::from_le_bytes(hash.as_bytes()[..4].try_into().unwrap_or_default());
        LoraAdapter {
            lora_id: i64::from(number >> 1) + 1,
            lora_name: name.to_owned(),
            source_path: paths.get(name).cloned().unwrap_or_default(),
        }
    }
}

/// The caller.
///
/// # Errors
/// When nobody has found out, which would be a defect.
pub fn caller<T>(request: &Request<T>) -> Result<Caller, ApiError> {
    request.extensions().get().cloned().ok_or_else(|| ApiError::internal("the caller is not known"))
}

/// The error of a method that is not served.
fn unserved<T>(method: &str, why: &str) -> MethodResult<T> {
    Err(Status::unimplemented(format!("kernmill has no {method}: {why}")))
}

/// Why nothing is done to weights.
const WEIGHTS: &str = "the weights of a server do not change while it runs";
/// Why nothing pauses.
const PAUSE: &str = "a server generates until it is drained, which Shutdown asks for";

#[tonic::async_trait]
impl control_server::Control for Control {
    async fn get_server_info(&self, _: Request<GetServerInfoRequest>) -> MethodResult<ServerInfo> {
        // One process on one machine.
        let parallelism = ParallelismInfo {
            tensor_parallel_size: 1,
            pipeline_parallel_size: 1,
            data_parallel_size: 1,
            decode_context_parallel_size: 1,
            world_size: 1,
            data_parallel_size_local: 1,
            ..ParallelismInfo::default()
        };
        Ok(Response::new(ServerInfo {
            engine_version: format!("kernmill {}", env!("CARGO_PKG_VERSION")),
            api_version: "vllm".to_owned(),
            instance_id: self.instance.clone(),
            parallelism: Some(parallelism),
            max_model_len: self.state.backend.facts().context,
            proto_version: vllm_proto::VERSION.to_owned(),
            ..ServerInfo::default()
        }))
    }

    async fn get_model_info(&self, _: Request<GetModelInfoRequest>) -> MethodResult<ModelInfo> {
        let config = &self.state.config;
        let model = &self.state.backend.facts().model;
        let aliases = config.aliases.iter().filter(|(_, meant)| *meant == model);
        Ok(Response::new(ModelInfo {
            model_id: model.clone(),
            served_model_name: model.clone(),
            served_model_aliases: aliases.map(|(name, _)| name.clone()).collect(),
            supports_text_input: true,
            supports_token_ids_input: true,
            supports_lora: config.adapters.is_some() || !self.state.backend.adapters().is_empty(),
            ..ModelInfo::default()
        }))
    }

    async fn shutdown(&self, request: Request<ShutdownRequest>) -> MethodResult<ShutdownResponse> {
        let drained = caller(&request).and_then(|caller| models::drain(&self.state, &caller));
        drained.map_err(|error| status::of(&error))?;
        Ok(Response::new(ShutdownResponse {}))
    }

    async fn abort(&self, request: Request<AbortRequest>) -> MethodResult<AbortResponse> {
        let caller = caller(&request).map_err(|error| status::of(&error))?;
        self.aborts.abort(&caller, &request.get_ref().request_ids);
        Ok(Response::new(AbortResponse {}))
    }

    async fn load_lora(&self, request: Request<LoadLoraRequest>) -> MethodResult<LoadLoraResponse> {
        let loaded = async {
            let caller = caller(&request)?;
            let LoadLoraRequest { lora_name, source_path } = request.get_ref();
            models::load(&self.state, &caller, lora_name, source_path).await
        };
        loaded.await.map_err(|error| status::of(&error.renamed("lora_path", "source_path")))?;
        let LoadLoraRequest { lora_name, source_path } = request.into_inner();
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        paths.insert(lora_name.clone(), source_path);
        drop(paths);
        Ok(Response::new(LoadLoraResponse { adapter: Some(self.adapter(&lora_name)) }))
    }

    async fn unload_lora(&self, request: Request<UnloadLoraRequest>) -> MethodResult<UnloadLoraResponse> {
        let name = &request.get_ref().lora_name;
        let adapter = self.adapter(name);
        let caller = caller(&request).map_err(|error| status::of(&error))?;
        models::unload(&self.state, &caller, name).await.map_err(|error| status::of(&error))?;
        self.paths.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        Ok(Response::new(UnloadLoraResponse { adapter: Some(adapter) }))
    }

    async fn list_loras(&self, _: Request<ListLorasRequest>) -> MethodResult<ListLorasResponse> {
        let names = self.state.backend.adapters();
        let adapters = names.iter().map(|name| self.adapter(name)).collect();
        Ok(Response::new(ListLorasResponse { adapters }))
    }

    async fn get_kv_event_sources(
        &self,
        _: Request<GetKvEventSourcesRequest>,
    ) -> MethodResult<GetKvEventSourcesResponse> {
        unserved("GetKvEventSources", "it tells nobody which prompts it has cached")
    }

    async fn pause_generation(
        &self,
        _: Request<PauseGenerationRequest>,
    ) -> MethodResult<PauseGenerationResponse> {
        unserved("PauseGeneration", PAUSE)
    }

    async fn resume_generation(
        &self,
        _: Request<ResumeGenerationRequest>,
    ) -> MethodResult<ResumeGenerationResponse> {
        unserved("ResumeGeneration", PAUSE)
    }

    async fn is_paused(&self, _: Request<IsPausedRequest>) -> MethodResult<IsPausedResponse> {
        unserved("IsPaused", PAUSE)
    }

    async fn sleep(&self, _: Request<SleepRequest>) -> MethodResult<SleepResponse> {
        unserved("Sleep", PAUSE)
    }

    async fn wake_up(&self, _: Request<WakeUpRequest>) -> MethodResult<WakeUpResponse> {
        unserved("WakeUp", PAUSE)
    }

    async fn is_sleeping(&self, _: Request<IsSleepingRequest>) -> MethodResult<IsSleepingResponse> {
        unserved("IsSleeping", PAUSE)
    }

    async fn init_weight_transfer_engine(
        &self,
        _: Request<InitWeightTransferEngineRequest>,
    ) -> MethodResult<InitWeightTransferEngineResponse> {
        unserved("InitWeightTransferEngine", WEIGHTS)
    }

    async fn start_weight_update(
        &self,
        _: Request<StartWeightUpdateRequest>,
    ) -> MethodResult<StartWeightUpdateResponse> {
        unserved("StartWeightUpdate", WEIGHTS)
    }

    async fn start_draft_weight_update(
        &self,
        _: Request<StartDraftWeightUpdateRequest>,
    ) -> MethodResult<StartDraftWeightUpdateResponse> {
        unserved("StartDraftWeightUpdate", WEIGHTS)
    }

    async fn update_weights(&self, _: Request<UpdateWeightsRequest>) -> MethodResult<UpdateWeightsResponse> {
        unserved("UpdateWeights", WEIGHTS)
    }

    async fn finish_weight_update(
        &self,
        _: Request<FinishWeightUpdateRequest>,
    ) -> MethodResult<FinishWeightUpdateResponse> {
        unserved("FinishWeightUpdate", WEIGHTS)
    }

    async fn update_weight_version(
        &self,
        _: Request<UpdateWeightVersionRequest>,
    ) -> MethodResult<UpdateWeightVersionResponse> {
        unserved("UpdateWeightVersion", WEIGHTS)
    }

    async fn get_weight_version(
        &self,
        _: Request<GetWeightVersionRequest>,
    ) -> MethodResult<GetWeightVersionResponse> {
        unserved("GetWeightVersion", WEIGHTS)
    }
}

package scale

// Row is a row of the table.
type Row struct {
	ID, Title, Unit string
	// Scale divides the value to get the unit; zero means 1.
	Scale float64
}

// rows are all rows, in the order of the table.
var rows = []Row{
	{ID: "start_seconds", Title: "start of the first node → all Ready", Unit: "s"},
	{ID: "start_requests", Title: "requests per node until then", Unit: ""},
	{ID: "start_bytes", Title: "bytes per node until then", Unit: "kB", Scale: 1e3},
	{ID: "pods_ready", Title: "pods Ready", Unit: ""},
	{ID: "pods_seconds", Title: "first pod created → all Ready", Unit: "s"},
	{ID: "pod_p50", Title: "create → Ready, p50", Unit: "s"},
	{ID: "pod_p99", Title: "create → Ready, p99", Unit: "s"},
	{ID: "pod_requests", Title: "requests per pod", Unit: ""},
	{ID: "pod_bytes", Title: "bytes per pod", Unit: "kB", Scale: 1e3},
	{ID: "pod_api_cpu", Title: "CPU of the API server per pod", Unit: "ms", Scale: 1e-3},
	{ID: "pod_node_cpu", Title: "CPU of the node per pod", Unit: "ms", Scale: 1e-3},
	{ID: "idle_requests", Title: "idle: requests per node and minute", Unit: ""},
	{ID: "idle_bytes", Title: "idle: bytes per node and minute", Unit: "kB", Scale: 1e3},
	{ID: "watches", Title: "idle: watches per node", Unit: ""},
	{ID: "idle_api_cpu", Title: "idle: CPU of the API server", Unit: "cores"},
	{ID: "idle_node_cpu", Title: "idle: CPU per node", Unit: "cores"},
	{ID: "api_memory", Title: "memory of the API server (PSS)", Unit: "MB", Scale: 1e6},
	{ID: "node_pss", Title: "memory per node (PSS)", Unit: "MB", Scale: 1e6},
	{ID: "node_anonymous", Title: "memory per node (anonymous)", Unit: "MB", Scale: 1e6},
	{ID: "lease_p99", Title: "lease renewed late by, p99", Unit: "s"},
	{ID: "lease_max", Title: "lease renewed late by, most", Unit: "s"},
	{ID: "failed_requests", Title: "requests that failed", Unit: ""},
	{ID: "configmap_seconds", Title: "ConfigMap of all pods changed → every pod has it", Unit: "s"},
	{ID: "configmap_requests", Title: "requests per node for that", Unit: ""},
	{ID: "configmap_peak", Title: "most requests in a second", Unit: ""},
	{ID: "restart_seconds", Title: "all agents restarted → every lease renewed", Unit: "s"},
	{ID: "restart_requests", Title: "requests per node for that", Unit: ""},
	{ID: "restart_lists", Title: "lists per node for that, also at the beginning of a watch", Unit: ""},
	{ID: "restart_peak", Title: "most requests in a second", Unit: ""},
	{ID: "restart_lost", Title: "pods that became not Ready", Unit: ""},
	{ID: "outage_attempts", Title: "API server away: connections per node and minute", Unit: ""},
	{ID: "outage_seconds", Title: "API server back → every lease renewed", Unit: "s"},
	{ID: "outage_watches", Title: "API server back → every watch open again", Unit: "s"},
	{ID: "outage_requests", Title: "requests per node for that", Unit: ""},
	{ID: "outage_lists", Title: "lists per node for that, also at the beginning of a watch", Unit: ""},
	{ID: "outage_peak", Title: "most requests in a second", Unit: ""},
	{ID: "outage_lost", Title: "pods that became not Ready", Unit: ""},
}

func (r Row) value(run *Run) (float64, bool) {
	value, ok := run.Values[r.ID]
	if r.Scale != 0 {
		value /= r.Scale
	}
	return value, ok
}

# `make` lists the targets. Build results go to bin/. Results that are slow to build (the bundled
# runtime, the control plane for tests) are cached in ~/.cache/swiftlet.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS  = -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
# Without grpcnotrace, gRPC links html/template, and with it every exported method.
TAGS     = grpcnotrace
export GO ?= go
say      = @printf '\033[1m%s\033[0m\n' "$(1)"

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help deps modules build swiftlet bundle images api cri-docker test-cri-docker test-api kills run check unit reference e2e why-faults test-cgroup2 ramps sanity page page-check page-test churn fuzz simulate crash mutations bed vulncheck monitoring gpu gpu-programs conformance critest kubeadm smoke upstream-diff swap-versions bench bench-quick scale test trust nightly clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

deps: ## install missing Debian packages (needs root if there are any)
	@hack/install-deps.sh

# Retries, as a proxy may reject requests for a while.
fetch = for try in 1 2 3 4 5; do $(GO) -C $(1) mod download && exit 0; echo "downloading modules failed, retrying"; sleep $${try}0; done; exit 1

modules:
	@$(call fetch,.)

build: deps bundle swiftlet images ## build bin/swiftlet, bin/bundle and bin/images

swiftlet: modules
	$(call say,building bin/swiftlet)
	@hashes=$$(hack/bundle-hashes.sh) && CGO_ENABLED=0 hack/progress.sh -n bin/swiftlet $(GO) build -trimpath -tags $(TAGS) -ldflags "$(LDFLAGS) -X main.bundleHashes=$$hashes" -o bin/swiftlet ./cmd/swiftlet

bundle:
	$(call say,building the runtime: containerd · runc · CNI plugins)
	@mkdir -p bin && dir=$$(hack/progress.sh hack/build-tools.sh bundle) && ln -sfn "$$dir" bin/bundle

images: modules
	$(call say,building images)
	@$(GO) run ./images bin/images

# About five minutes the first time. Not part of build: `swiftlet up` needs it only with --api.
# bin/swiftlet knows the programs by their hashes, so it is linked again.
api: ## build bin/api, the API server and kubectl for `swiftlet up --api`
	$(call say,building the API server)
	@mkdir -p bin && dir=$$(hack/progress.sh hack/build-api.sh) && ln -sfn "$$dir" bin/api
	@[ ! -e bin/swiftlet ] || $(MAKE) --no-print-directory swiftlet

# Not part of build: only machines with Docker Engine need it.
cri-docker: ## build bin/cri-docker, the CRI server for Docker Engine
	$(call say,building cri-docker)
	@mkdir -p bin && dir=$$(hack/progress.sh hack/build-cri-docker.sh) && ln -sfn "$$dir/cri-docker" bin/cri-docker

test-cri-docker: bundle images ## tests of cri-docker with a real Docker Engine (needs root)
	$(call say,tests of cri-docker)
	@hack/install-deps.sh docker.io
	@cd cri-docker && ../hack/gotest.sh -count=1 ./...

test-api: reference ## tests of the API server with kubectl (API_TESTS=-short for some, SWIFTLET_KILLS=50 for more kills under load)
	$(call say,tests of the API server)
	@cd apiserver && CGO_ENABLED=0 ../hack/gotest.sh -trimpath -count=1 $(API_TESTS) ./...

KILLS ?= 50
kills: api build ## kill the API server, containerd and swiftlet KILLS (50) times each while clients write, and cut the power as often (needs root)
	$(call say,kills under load)
	@SWIFTLET_KILLS=$(KILLS) $(GO) test -count=1 -v -timeout 120m -run 'TestUpKills|TestPowerLoss' ./cmd/swiftlet

run: build ## run the example pods on this machine, no cluster needed (needs root)
	@[ "$$(id -u)" = 0 ] || { echo "pods need root; use: sudo make run"; exit 1; }
	@exec bin/swiftlet up --manifests examples/manifests

# The module of the API server is checked with the settings it is built with, so that its imports are in the cache.
as_api_is_built = cd apiserver && CGO_ENABLED=0 GOFLAGS=-trimpath

check: modules ## gofmt, vet, staticcheck, import rules, licences
	$(call say,checking)
	@$(call fetch,apiserver)
	@$(call fetch,cri-docker)
	@bad=$$(git ls-files -co --exclude-standard '*.go' | xargs -r gofmt -l); [ -z "$$bad" ] || { echo "not gofmt'ed:"; echo "$$bad"; exit 1; }
	@$(GO) vet ./...
	@$(GO) tool staticcheck ./...
	@$(as_api_is_built) $(GO) vet ./...
	@check=$$($(GO) tool -n staticcheck) && $(as_api_is_built) "$$check" ./...
	@$(GO) -C cri-docker vet ./...
	@check=$$($(GO) tool -n staticcheck) && cd cri-docker && "$$check" ./...
	@$(GO) test -count=1 ./internal/architecture ./test/licences

# The database is a directory or an address of https://go.dev/doc/security/vuln/database.
vulncheck: modules ## known vulnerabilities in what is linked (VULNDB=file:///dir or an address; without one nothing is checked)
	@hack/vulncheck.sh "$(VULNDB)"

unit: bundle images ## unit tests with the race detector
	$(call say,unit tests)
	@hack/gotest.sh -race -short ./...
	@cd cri-docker && ../hack/gotest.sh ./internal/...
	@hack/gotest.sh ./internal/plan ./test/simulate ./test/growth # too slow with the race detector, or changed by it
	@hack/gotest.sh -count=1 -run '^TestCounts' ./test/path ./internal/logs ./internal/resource/allocation # counts change with the race detector

# Without the clients of clouds, which the tag leaves out, a third of the modules is needed.
monitoring: export GOFLAGS = -tags=remove_all_sd
monitoring: modules ## check the rules and the dashboard of examples/monitoring with promtool and Prometheus' engine
	$(call say,monitoring)
	@for try in 1 2 3 4 5; do $(GO) -C examples/monitoring/check list -deps -test ./... tool >/dev/null && break; sleep $${try}0; done
	@$(GO) -C examples/monitoring/check test -count=1 ./...
	@$(GO) -C examples/monitoring/check tool promtool check rules --lint=all --lint-fatal ../rules.yaml

# The built page is committed, so that only those who change it need npm.
install_page = cd page && npm ci --ignore-scripts --no-audit --no-fund --silent

page: ## build the agent's page from page/src into internal/page/assets/dist (needs npm)
	$(call say,building the page)
	@$(install_page)
	@$(call fetch,page/build)
	@$(GO) -C page/build run .

page-check: ## check that the committed page is what page/src builds (where npm is installed)
	$(call say,page)
	@if command -v npm >/dev/null; then \
		$(install_page) && node --test --test-reporter=dot src && cd .. && ( $(call fetch,page/build) ) && $(GO) -C page/build test -count=1 ./...; \
	else echo "npm is not installed: not checked"; fi

# Chromium is 400 MB: only these tests install it.
page-test: build ## tests that drive Chromium through the page, also of swiftlet up (needs root)
	$(call say,the page in Chromium)
	@hack/install-deps.sh chromium
	@$(call fetch,test/page/browser)
	@cd test/page/browser && ../../../hack/gotest.sh -count=1 ./...

# Targets run one at a time. FUZZ=Name runs only targets of that name.
FUZZTIME ?= 10m
FUZZ     ?= Fuzz
fuzz: modules ## run every fuzz target for FUZZTIME (10m) each
	$(call say,fuzzing)
	@hack/fuzz.sh $(FUZZTIME) $(FUZZ)

SEEDS ?= 5000
FIRST ?= 0
simulate: modules ## the whole agent in a simulated world: SEEDS=n from FIRST=n on, or SEED=n with a trace of every call
	$(call say,simulation)
	@bash -o pipefail -c "$(GO) test -count=1 -v -timeout 60m -run TestSimulate ./test/simulate $(if $(SEED),-seed $(SEED),-seeds $(SEEDS) -first $(FIRST)) | grep -vE '^ *(=== |--- PASS)'"

crash: modules ## kill the agent at every call of a pod's life, before and after it was executed
	$(call say,crash matrix)
	@SWIFTLET_CRASH=all bash -o pipefail -c "$(GO) test -count=1 -v -timeout 60m -run TestCrash ./test/simulate ./test/path | grep -vE '^ *(=== |--- PASS)'"

mutations: modules ## deliberate breaks; prints which test caught each (BREAK=regexp for some)
	$(call say,mutations)
	@$(GO) run ./test/mutation '$(BREAK)'

reference: ## build the control plane and the reference kubelet for tests
	$(call say,building the control plane for tests)
	@hack/progress.sh hack/build-tools.sh reference >/dev/null && hack/build-metrics-server.sh >/dev/null

e2e: api build reference ## tests with a real runtime and a real API server (needs root)
	$(call say,end-to-end tests)
	@hack/gotest.sh -count=1 -timeout 30m ./cmd/swiftlet ./test/bed ./test/e2e
	@hack/gotest.sh -count=1 -run TestCgroup1 ./test/limits
	@hack/gotest.sh -count=1 ./test/upstreamdiff

why-faults: build reference ## inject all faults of pods and nodes in a real runtime; prints for each what swiftlet why says (needs root)
	$(call say,why)
	@SWIFTLET_WHY_FAULTS=all $(GO) test -count=1 -v -timeout 20m -run '^TestWhyOnRealRuntime$$' ./test/e2e

# Tests are compiled on the host and run in user-mode Linux. Add packages here.
test-cgroup2: build reference ## kernel tests on cgroup v2, in user-mode Linux (needs root)
	$(call say,cgroup v2)
	@CGO_ENABLED=0 $(GO) build -o bin/uml ./test/uml/cmd/uml
	@hack/gotest.sh -count=1 ./test/uml
	@hack/with-iscsi.sh hack/gotest.sh -count=1 -exec $(CURDIR)/bin/uml -run Kernel ./internal/cgroup ./internal/stats ./internal/volume ./internal/volume/quota
	@SWIFTLET_TEST_CGROUP_DRIVER=systemd hack/gotest.sh -count=1 -exec "$(CURDIR)/bin/uml -systemd" -run Kernel ./internal/cgroup ./internal/volume/mounts
	@hack/gotest.sh -count=1 -exec '$(CURDIR)/bin/uml -memory 200' -run TestKernelOOM ./internal/oom
	@hack/gotest.sh -count=1 -exec '$(CURDIR)/bin/uml -memory 400' -run TestKernelRamps ./internal/eviction
	@hack/gotest.sh -count=1 -run TestCgroup2 ./test/limits

ramps: build ## eviction of 20 pods that use up the memory, on cgroup v2 in user-mode Linux (needs root)
	$(call say,eviction under memory pressure)
	@CGO_ENABLED=0 $(GO) build -o bin/uml ./test/uml/cmd/uml
	@SWIFTLET_RAMPS=20 $(GO) test -count=1 -v -timeout 30m -exec '$(CURDIR)/bin/uml -memory 400 -deadline 20m' -run TestKernelRamps ./internal/eviction

sanity: modules ## csi-sanity tests of the CSI driver for tests (needs root)
	$(call say,csi-sanity of the CSI driver for tests)
	@$(call fetch,test/csidriver/sanity)
	@$(GO) -C test/csidriver/sanity test -count=1 ./...

churn: build reference ## stress tests: 200 pods for 5 minutes and 1,000 with volumes while the agent is killed; 3 minutes without an API server; agent restarts with 150 probed pods (needs root)
	$(call say,stress tests)
	@$(GO) test -count=1 -v -timeout 30m -run 'TestKilledAtAnyLine|TestSubPathRace' ./internal/volume
	@SWIFTLET_CHURN=5m $(GO) test -count=1 -v -timeout 30m -run TestChurn ./test/e2e
	@SWIFTLET_API_OUTAGE=3m $(GO) test -count=1 -v -timeout 30m -run TestAPIServerOutage ./test/e2e
	@SWIFTLET_PROBE_RESTARTS=5 $(GO) test -count=1 -v -timeout 30m -run TestProbesAcrossRestarts ./test/e2e
	@SWIFTLET_VOLUME_CHURN=1000 $(GO) test -count=1 -v -timeout 30m -run TestVolumeChurn ./test/e2e

gpu: ## pods on the GPUs of this machine, with NVIDIA's device plugin and DRA driver; skipped where there is none (needs root)
	@examples/gpu/run.sh --probe && $(MAKE) --no-print-directory build api gpu-programs && examples/gpu/run.sh || [ $$? = 3 ]

gpu-programs: modules ## build NVIDIA's programs and the images of examples/gpu
	$(call say,building NVIDIA's device plugin and DRA driver)
	@mkdir -p bin && dir=$$(hack/progress.sh hack/build-gpu.sh tools) && ln -sfn "$$dir" bin/gpu
	@dir=$$(hack/progress.sh hack/build-gpu.sh dra) && ln -sfn "$$dir" bin/gpu-dra
	@$(GO) run ./images -gpu bin/gpu bin/gpu-images

bed: deps bundle reference ## run a test cluster on this machine until Ctrl-C (KUBELET=reference) (needs root)
	@$(GO) run ./test/bed/cmd/bed $(if $(KUBELET),-kubelet $(KUBELET))

conformance: deps bundle reference $(if $(filter lone,$(SUITE)),build api) ## upstream's end-to-end tests on both kubelets, or with SUITE=lone on a lone node and a cluster (KUBELET=, SIDE=, FOCUS=, SKIP=, PROCS=, MACHINE=1, LEFTOUT=1, NOTRUN=1, RECORD=1, LIST=1) (needs root)
	$(call say,conformance)
	@$(GO) run ./test/conformance/cmd/conformance $(if $(SUITE),-suite $(SUITE)) $(if $(KUBELET)$(SIDE),-side $(KUBELET)$(SIDE)) $(if $(PROCS),-procs $(PROCS)) \
		$(if $(FOCUS),-focus '$(FOCUS)') $(if $(SKIP),-skip '$(SKIP)') $(if $(MACHINE),-machine) $(if $(LEFTOUT),-left-out) $(if $(NOTRUN),-not-run) $(if $(RECORD),-record) $(if $(LIST),-list)

critest: deps bundle reference ## critest and crictl on a runtime that the agent uses (needs root)
	$(call say,critest and crictl on the agent's runtime)
	@hack/gotest.sh -count=1 -v -timeout 40m ./test/critools

kubeadm: build reference ## a cluster set up by kubeadm: control plane and one node ours, one node with the reference kubelet (needs root)
	$(call say,building kubeadm)
	@hack/build-kubeadm.sh >/dev/null
	$(call say,kubeadm)
	@hack/gotest.sh -count=1 -v -timeout 30m ./test/kubeadm/...

smoke: deps bundle reference ## a few of upstream's end-to-end tests, all of which must pass (needs root)
	$(call say,smoke test)
	@$(GO) run ./test/conformance/cmd/conformance -side ours -smoke -procs 4 -out bin/smoke

# Without VERSION, the release that Swiftlet implements.
upstream-diff: modules ## compare flags, fields, gates, metrics, events, endpoints and Node fields with a Kubernetes release (VERSION=v1.38.0)
	@$(GO) run ./test/upstreamdiff $(if $(filter-out file,$(origin VERSION)),$(VERSION))

SWAP_VERSIONS ?= v1.35.4 v1.36.3
swap-versions: build reference ## replace reference kubelets of earlier releases by ours under 60 pods, and back (needs root)
	$(call say,swapping kubelets of earlier releases)
	@for v in $(SWAP_VERSIONS); do hack/build-old-kubelet.sh $$v >/dev/null || exit 1; done
	@SWIFTLET_SWAP_VERSIONS="$(SWAP_VERSIONS)" $(GO) test -count=1 -v -timeout 60m -run TestVersionSwap ./test/e2e

# ARGS are flags of bench/cmd/bench, such as -rows or -rounds.
bench: build reference ## bare CRI calls, reference kubelet and Swiftlet side by side, within 45 minutes; writes bench/results and the tables of README.md and docs (ARGS=) (needs root)
	$(call say,benchmark)
	@$(GO) build -o bin/bench ./bench/cmd/bench
	@bin/bench -publish $(ARGS)

bench-quick: build reference ## the short part of make bench, within 5 minutes; changes no document (ARGS=) (needs root)
	$(call say,quick benchmark)
	@$(GO) build -o bin/bench ./bench/cmd/bench
	@bin/bench -quick -out bin/bench-results $(ARGS)

# ARGS are flags of test/scale/cmd/scale, such as -nodes 20 -compare 20. hollow is linked as bin/swiftlet is.
scale: deps bundle reference ## 100, 300 and 1,000 nodes on one API server, and kubemark's at 50 and 100, within 40 minutes; writes test/scale/results and docs (ARGS=) (needs root)
	$(call say,building kubemark)
	@hack/build-kubemark.sh >/dev/null
	$(call say,scale)
	@CGO_ENABLED=0 $(GO) build -trimpath -tags $(TAGS) -ldflags "-s -w" -o bin/hollow ./test/scale/cmd/hollow
	@$(GO) build -o bin/scale ./test/scale/cmd/scale
	@bin/scale -publish $(ARGS)

# The longest tests of the API server are run by test-api alone.
test: API_TESTS = -short
test: api build check unit monitoring page-check sanity test-cgroup2 test-api e2e page-test smoke ## everything that must pass
	$(call say,all tests passed)

trust: build reference ## tests of reliability, class by class, each under 40 minutes (CLASS=, FORCE=1); repeat it to resume (needs root)
	$(call say,trust)
	@$(GO) run ./test/trust/cmd/trust $(if $(CLASS),-class $(CLASS)) $(if $(FORCE),-force)

NIGHTLY ?= test test-api test-cri-docker kubeadm swap-versions churn ramps critest conformance
nightly: ## the long targets one after another (NIGHTLY=), results in bin/nightly; repeat it to resume (needs root)
	@hack/nightly.sh $(NIGHTLY)

clean: ## remove bin/; the cache in ~/.cache/swiftlet is kept
	@rm -rf bin

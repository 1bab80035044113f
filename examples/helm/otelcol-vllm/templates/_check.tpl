{{/* What values.schema.json cannot say in a sentence: it has only the names and the types. Every
     other template may rely on it. */}}
{{- define "otelcol-vllm.check" -}}
{{- $v := .Values -}}
{{- $address := "^(https?://[^/?#\\s@]+([/?#][^\\s]*)?)?$" -}}
{{- $name := "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" -}}
{{- $optional := "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$" -}}
{{- $memory := "^([1-9][0-9]*(Mi|Gi))?$" -}}
{{- $duration := "^([0-9]+([.][0-9]+)?(ms|s|m|h|d|w))+$" -}}
{{- $rows := list
  (list "mode" $v.mode "^(agent|pool|pool-label|shards|gateway|content)$" "Write pool-label, agent, pool, shards, gateway or content")
  (list "fullnameOverride" $v.fullnameOverride "^([a-z]([-a-z0-9]{0,38}[a-z0-9])?)?$" "Write at most 40 small letters, digits and hyphens, or leave it out")
  (list "image.repository" $v.image.repository "^([^/\\s@]+/)*[^/\\s@:]+$" "Write the name of the image, such as registry.example.com/otelcol-vllm, and its version into image.tag")
  (list "image.tag" $v.image.tag "^[A-Za-z0-9_.-]{0,128}$" "Write a tag of the image, such as 0.2.0")
  (list "image.digest" $v.image.digest "^(sha256:[0-9a-f]{64})?$" "Write sha256: and 64 hexadecimal digits")
  (list "image.pullPolicy" $v.image.pullPolicy "^(Always|IfNotPresent|Never)?$" "Write Always, IfNotPresent or Never")
  (list "backend.endpoint" $v.backend.endpoint $address "Write the base address of the OTLP backend, such as https://otlp.example.com, or leave it empty: then a Prometheus can scrape the collector")
  (list "models.selector" $v.models.selector "^[^:{}]+$" "Write the labels of the vLLM pods, such as app=vllm,tier=chat")
  (list "picker.endpoint" $v.picker.endpoint $address "Write the address of the endpoint picker, such as http://vllm-epp.vllm.svc:9090")
  (list "picker.namespace" $v.picker.namespace $optional "Write the name of a namespace")
  (list "shards.poolLabel" $v.shards.poolLabel "^.+$" "Write a label of the vLLM pods")
  (list "budgetWindow" $v.budgetWindow "^[1-9][0-9]*(h|d|w)$" "Write hours, days or weeks, such as 30d")
  (list "queue.size" $v.queue.size "^([2-9]|[1-9][0-9]+)Gi$" "Write 2Gi or more: the queue has up to 800 MB, and its compaction as much again")
  (list "queue.storageClass" $v.queue.storageClass $optional "Write the name of a storage class")
  (list "queue.hostPath" $v.queue.hostPath "^(/.+)?$" "Write the path of a folder of the node, such as /var/lib/otelcol-vllm")
  (list "prometheus.namespace" $v.prometheus.namespace $name "Write the namespace of the Prometheus, such as monitoring")
  (list "prometheus.interval" $v.prometheus.interval "^([1-9]|[1-9][0-9]|1[01][0-9]|120)s$|^[12]m$" "Write at most 120s: the rules need a scrape every two minutes")
  (list "rules.runbookBase" $v.rules.runbookBase "^https?://[^\\s'\"`\\\\]+/$" "Write the address of the folder of the runbooks, with / at the end")
  (list "rules.grafanaURL" $v.rules.grafanaURL "^(https?://[^\\s'\"`\\\\]*[^\\s'\"`\\\\/])?$" "Write Grafana's address, without / at the end")
-}}
{{- range $v.models.namespaces -}}
{{- $rows = append $rows (list "models.namespaces" . $name "Write the namespaces of the vLLM pods") -}}
{{- end -}}
{{- range $v.pools -}}
{{- $rows = append $rows (list "pools: name" .name $name "Write the name of the InferencePool") -}}
{{- $rows = append $rows (list "pools: picker" .picker "^https?://[^/?#\\s]+" "Write the address of its endpoint picker, such as http://vllm-epp.vllm.svc:9090") -}}
{{- end -}}
{{- range $label, $_ := $v.podLabels -}}
{{- if has $label (list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component") -}}
{{- fail (printf "podLabels has %s, which the chart sets and selects its pods by. Take another label" $label) -}}
{{- end -}}
{{- end -}}
{{- range $kind := list "cpu" "memory" "ephemeral-storage" -}}
{{- $request := dig "requests" $kind "" $v.resources -}}
{{- $limit := dig "limits" $kind "" $v.resources -}}
{{- if and $request $limit (gt (float64 (include "otelcol-vllm.amount" $request)) (float64 (include "otelcol-vllm.amount" $limit))) -}}
{{- fail (printf "resources.requests.%s is above resources.limits.%s. Lower the one or raise the other" $kind $kind) -}}
{{- end -}}
{{- end -}}
{{- range $v.backend.headers -}}
{{- $rows = append $rows (list "backend.headers: name" .name "^[A-Za-z0-9!#%&'*+.^_|~-]+$" "Write the name of an HTTP header, such as X-API-Key") -}}
{{- $rows = append $rows (list "backend.headers: secret" .secret $name "Write the name of a Secret in the namespace of the release") -}}
{{- end -}}
{{- range $v.objectives -}}
{{- $rows = append $rows (list "objectives: threshold" (default "1s" .threshold) $duration "Write a duration, such as 2.5s") -}}
{{- end -}}
{{- range $kind := list "requests" "limits" -}}
{{- with get $v.resources $kind -}}
{{- $rows = append $rows (list (printf "resources.%s.memory" $kind) (default "" .memory) $memory "Write a whole number with Mi or Gi, such as 512Mi") -}}
{{- end -}}
{{- end -}}
{{- range $rows -}}
{{- if not (regexMatch (index . 2) (index . 1)) -}}
{{- fail (printf "%s is %q. %s" (index . 0) (index . 1) (index . 3)) -}}
{{- end -}}
{{- end -}}
{{- range list (list "models.port" $v.models.port 1 65535) (list "lora.port" $v.lora.port 1 65535) (list "shards.count" $v.shards.count 2 1000) (list "engines" $v.engines 0 10000) -}}
{{- if or (lt (int64 (index . 1)) (int64 (index . 2))) (gt (int64 (index . 1)) (int64 (index . 3))) -}}
{{- fail (printf "%s is %d. Write a number from %d to %d" (index . 0) (int64 (index . 1)) (index . 2) (index . 3)) -}}
{{- end -}}
{{- end -}}
{{- range $v.objectives -}}
{{- if or (le (float64 .target) 0.0) (ge (float64 .target) 1.0) -}}
{{- fail (printf "objectives: the target of %q is %v. Write a share between 0 and 1, such as 0.99" .name .target) -}}
{{- end -}}
{{- end -}}
{{- if not (regexMatch "^[a-z]" (include "otelcol-vllm.fullname" .)) -}}
{{- fail (printf "the name of the release is %q, and a Service begins with a letter. Set fullnameOverride" .Release.Name) -}}
{{- end -}}
{{- if contains "." .Release.Name -}}
{{- if not $v.fullnameOverride -}}
{{- fail (printf "the name of the release is %q, and a Service has no dot. Set fullnameOverride" .Release.Name) -}}
{{- end -}}
{{- end -}}
{{- if eq $v.mode "content" -}}
{{- if not (or $v.rules.configMap $v.prometheus.rules $v.dashboards.configMaps) -}}
{{- fail "the mode content has nothing to install. Set rules.configMap, prometheus.rules or dashboards.configMaps to true" -}}
{{- end -}}
{{- if $v.prometheus.podMonitor -}}
{{- fail "prometheus.podMonitor is true, and the mode content has no collectors to scrape. Leave it out" -}}
{{- end -}}
{{- end -}}
{{- if regexMatch "/v1/metrics/?$" $v.backend.endpoint -}}
{{- fail "backend.endpoint ends with /v1/metrics, which the collector adds. Leave that out" -}}
{{- end -}}
{{- if and (not $v.backend.endpoint) (or $v.backend.authorization $v.backend.headers) -}}
{{- fail "backend.authorization or backend.headers is set, and backend.endpoint is not. Write the address of the OTLP backend, or leave out the others; a preset reads variables of env" -}}
{{- end -}}
{{- with $v.backend.preset -}}
{{- if $v.backend.endpoint -}}
{{- fail "backend.endpoint and backend.preset are both set. A preset has an address of its own, and reads variables of env. Keep one of them" -}}
{{- end -}}
{{- if not ($.Files.Get (printf "files/backends/%s.yaml" .)) -}}
{{- $known := list -}}
{{- range $path, $_ := $.Files.Glob "files/backends/*.yaml" -}}
{{- $known = append $known (base $path | trimSuffix ".yaml") -}}
{{- end -}}
{{- fail (printf "backend.preset is %q. Write %s" . (join ", " $known)) -}}
{{- end -}}
{{- if not $v.env -}}
{{- fail (printf "backend.preset %s reads variables, and env is empty. Set those of examples/backends/%s.yaml" . .) -}}
{{- end -}}
{{- end -}}
{{- if or (not $v.models.namespaces) (ne (len $v.models.namespaces) (len (uniq $v.models.namespaces))) -}}
{{- fail "models.namespaces is empty, or has a name twice. Write each namespace of the vLLM pods once" -}}
{{- end -}}
{{- if and (has $v.mode (list "agent" "gateway")) (dig "processors" "vllm" "pool" "" $v.config) -}}
{{- fail (printf "config has pool, and the mode %s sees parts of pools. Take pool-label, or see docs/start/scale.md for agents with a second tier" $v.mode) -}}
{{- end -}}
{{- if and (has $v.mode (list "pool" "shards")) (semverCompare "<1.28.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "the mode %s needs Kubernetes 1.28 or newer, which numbers the pods of a StatefulSet; this is %s. Take the mode pool-label" $v.mode .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if eq $v.mode "pool" -}}
{{- if not $v.pools -}}
{{- fail "the mode pool needs pools: a list of InferencePools, each with name and picker. Without InferencePools take the mode pool-label" -}}
{{- end -}}
{{- if gt (len $v.models.namespaces) 1 -}}
{{- fail "models.namespaces has several names, and the mode pool reads one. Install a release for each, or take the mode pool-label" -}}
{{- end -}}
{{- else if $v.pools -}}
{{- fail (printf "pools is set, and only the mode pool reads it; the mode is %s. Set mode to pool, or leave pools out" $v.mode) -}}
{{- end -}}
{{- if and (eq $v.mode "gateway") (not $v.picker.endpoint) -}}
{{- fail "the mode gateway needs picker.endpoint: the address of the endpoint picker, such as http://vllm-epp.vllm.svc:9090" -}}
{{- end -}}
{{- if and (ne $v.mode "gateway") $v.picker.endpoint -}}
{{- fail (printf "picker.endpoint is set, and only the mode gateway reads it; the mode is %s. In the mode pool each pool has its own picker" $v.mode) -}}
{{- end -}}
{{- if and $v.objectives (has $v.mode (list "gateway" "content")) -}}
{{- fail (printf "objectives is set, and the mode %s has no engines to judge. Leave it out" $v.mode) -}}
{{- end -}}
{{- if and $v.probes (not (has $v.mode (list "pool" "pool-label"))) -}}
{{- fail (printf "probes is true, and only the modes pool and pool-label read it; the mode is %s. Leave it out" $v.mode) -}}
{{- end -}}
{{- if and $v.queue.hostPath (ne $v.mode "agent") -}}
{{- fail (printf "queue.hostPath is set, and only the mode agent reads it; the mode is %s, which has a volume claim. Leave it out" $v.mode) -}}
{{- end -}}
{{- with dig "service" "extensions" list $v.config -}}
{{- if not (has "health_check" .) -}}
{{- fail "config.service.extensions replaces the list of the mode, and lacks health_check, without which the pod is restarted. Write the whole list: health_check, health_check/ready, storage_check, file_storage, vllm_fleet and yours" -}}
{{- end -}}
{{- end -}}
{{- end }}

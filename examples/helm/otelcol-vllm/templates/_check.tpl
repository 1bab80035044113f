{{/* What values.schema.json cannot say, in sentences. Every other template may rely on it. */}}
{{- define "otelcol-vllm.check" -}}
{{- $v := .Values -}}
{{- if not $v.mode -}}
{{- fail "mode is not set. Set it to agent, pool, pool-label, shards, gateway or content; the chart's README says which to choose" -}}
{{- end -}}
{{- if eq $v.mode "content" -}}
{{- if not (or $v.rules.configMap $v.rules.prometheusRule $v.dashboards.configMaps) -}}
{{- fail "the mode content has nothing to install. Set rules.configMap, rules.prometheusRule or dashboards.configMaps to true" -}}
{{- end -}}
{{- if $v.monitoring.podMonitor.enabled -}}
{{- fail "monitoring.podMonitor.enabled is true, and the mode content has no collectors to monitor" -}}
{{- end -}}
{{- else -}}
{{- if not $v.image.repository -}}
{{- fail "image.repository is empty. Write the name of the image, or leave the key out for ghcr.io/otelcol-vllm/otelcol-vllm" -}}
{{- end -}}
{{- if not $v.backend.endpoint -}}
{{- fail "backend.endpoint is not set. Write the base address of the OTLP backend, such as https://otlp.example.com" -}}
{{- end -}}
{{- if not (or $v.backend.authorization $v.backend.existingSecret) -}}
{{- fail "neither backend.authorization nor backend.existingSecret is set. Name a Secret with the key OTLP_AUTHORIZATION, or write the whole Authorization header" -}}
{{- end -}}
{{- if and $v.backend.authorization $v.backend.existingSecret -}}
{{- fail "backend.authorization and backend.existingSecret are both set. Keep one of them" -}}
{{- end -}}
{{- end -}}
{{- if and (has $v.mode (list "pool" "shards")) (semverCompare "<1.28.0-0" .Capabilities.KubeVersion.Version) -}}
{{- fail (printf "the mode %s needs Kubernetes 1.28 or newer, which numbers the pods of a StatefulSet; this is %s" $v.mode .Capabilities.KubeVersion.Version) -}}
{{- end -}}
{{- if and (eq $v.mode "pool") (not $v.pools) -}}
{{- fail "the mode pool needs pools: a list of InferencePools, each with name and picker. Without InferencePools take the mode pool-label" -}}
{{- end -}}
{{- if and (ne $v.mode "pool") $v.pools -}}
{{- fail (printf "pools is set, and only the mode pool reads it; the mode is %s" $v.mode) -}}
{{- end -}}
{{- if and (eq $v.mode "gateway") (not $v.picker.endpoint) -}}
{{- fail "the mode gateway needs picker.endpoint: the address of the endpoint picker, such as http://vllm-epp.vllm.svc:9090" -}}
{{- end -}}
{{- if and (ne $v.mode "gateway") $v.picker.endpoint -}}
{{- fail (printf "picker.endpoint is set, and only the mode gateway reads it; the mode is %s. In the mode pool each pool has its own picker" $v.mode) -}}
{{- end -}}
{{- if and $v.objectives (has $v.mode (list "gateway" "content")) -}}
{{- fail (printf "objectives is set, and the mode %s has no engines to judge" $v.mode) -}}
{{- end -}}
{{- if and $v.probes (not (has $v.mode (list "pool" "pool-label"))) -}}
{{- fail (printf "probes is true, and only the modes pool and pool-label read it; the mode is %s" $v.mode) -}}
{{- end -}}
{{- if and $v.queue.hostPath (ne $v.mode "agent") -}}
{{- fail (printf "queue.hostPath is set, and only the mode agent reads it; the mode is %s, which has a volume claim" $v.mode) -}}
{{- end -}}
{{- end }}

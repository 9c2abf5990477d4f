-- What `\d+` shows; docs/sql.md says the same.

COMMENT ON SCHEMA trail IS
'The audit trail for reading; columns keep their names, types, order and meaning.';

COMMENT ON VIEW trail.audits IS
    'Every audit, in whatever state, with its result under the policy it was submitted with.';
COMMENT ON COLUMN trail.audits.audit_id IS
    'number of the audit; grows with the time of submission';
COMMENT ON COLUMN trail.audits.batch_id IS 'its batch; NULL for a single audit';
COMMENT ON COLUMN trail.audits.line IS
    'line of the uploaded file, from 1; NULL for a single audit';
COMMENT ON COLUMN trail.audits.custom_id IS 'the caller''s name for it';
COMMENT ON COLUMN trail.audits.status IS
    'queued, extracted (its claims are known), completed, failed or cancelled';
COMMENT ON COLUMN trail.audits.outcome IS 'scored or no_checkable_claims; NULL until completed';
COMMENT ON COLUMN trail.audits.score IS
    'response score from 0 to 1, higher means more likely hallucinated; NULL without a checkable '
    'claim and until completed';
COMMENT ON COLUMN trail.audits.label IS 'faithful or hallucinated; NULL where score is';
COMMENT ON COLUMN trail.audits.deciding_claim IS
    'position of the claim that decided; NULL where all claims count (mean, weighted, row-max)';
COMMENT ON COLUMN trail.audits.policy_id IS 'the policy version it was submitted with';
COMMENT ON COLUMN trail.audits.policy IS 'name of that policy';
COMMENT ON COLUMN trail.audits.policy_version IS
    'sixteen hexadecimal digits that change with any rule';
COMMENT ON COLUMN trail.audits.metadata IS 'the caller''s own object';
COMMENT ON COLUMN trail.audits.context IS 'what had been asked, if the caller said so';
COMMENT ON COLUMN trail.audits.response IS 'the text that was audited';
COMMENT ON COLUMN trail.audits.document_id IS 'the source it was audited against';
COMMENT ON COLUMN trail.audits.submitted_at IS
    'when it was accepted; all audits of a batch at once';
COMMENT ON COLUMN trail.audits.extracted_at IS 'when its claims were stored';
COMMENT ON COLUMN trail.audits.finished_at IS 'when it was completed, failed or cancelled';
COMMENT ON COLUMN trail.audits.month IS
    'first day of the month of submission, UTC; probabilities are partitioned by it';
COMMENT ON COLUMN trail.audits.queue_seconds IS
    'from submission to the start of the extraction that succeeded';
COMMENT ON COLUMN trail.audits.extraction_seconds IS 'what that extraction took';
COMMENT ON COLUMN trail.audits.verification_queue_seconds IS
    'from there to the start of the verification that succeeded';
COMMENT ON COLUMN trail.audits.verification_seconds IS
    'what that verification took, alone or in a load with others';
COMMENT ON COLUMN trail.audits.total_seconds IS 'from submission to the end';
COMMENT ON COLUMN trail.audits.claims IS 'claims extracted; NULL until then';
COMMENT ON COLUMN trail.audits.supported IS 'claims with this verdict; NULL until completed';
COMMENT ON COLUMN trail.audits.contradicted IS 'claims with this verdict; NULL until completed';
COMMENT ON COLUMN trail.audits.unsupported IS 'claims with this verdict; NULL until completed';
COMMENT ON COLUMN trail.audits.rejected IS
    'generated lines that the response does not assert; NULL until extracted';
COMMENT ON COLUMN trail.audits.unaudited IS
    'sentences of the response that are no claim; NULL until extracted';
COMMENT ON COLUMN trail.audits.prompt_tokens IS
    'tokens that the extractor read; NULL until extracted';
COMMENT ON COLUMN trail.audits.output_tokens IS
    'tokens that the extractor wrote; NULL until extracted';
COMMENT ON COLUMN trail.audits.extraction_mode IS
    'covered (copy check and coverage) or paper (one pass, no repair); NULL until extracted';
COMMENT ON COLUMN trail.audits.extractor IS
    'name of the model that proposed the claims; NULL until extracted';
COMMENT ON COLUMN trail.audits.extractor_revision IS
    'its commit or file digest; empty for no model';
COMMENT ON COLUMN trail.audits.extractor_provenance IS
    'all that identifies it: backend, dtype, device, library versions';
COMMENT ON COLUMN trail.audits.nli_model IS 'name of the encoder; NULL until completed';
COMMENT ON COLUMN trail.audits.nli_revision IS 'its commit or file digest; NULL until completed';
COMMENT ON COLUMN trail.audits.nli_provenance IS
    'all that identifies it: backend, dtype, device, library versions, max_tokens';
COMMENT ON COLUMN trail.audits.reading_id IS 'how the source was read, in document_readings';
COMMENT ON COLUMN trail.audits.preselected_spans IS
    'most spans checked for each claim; NULL for all of them';
COMMENT ON COLUMN trail.audits.warnings IS 'what limits the worth of the result';
COMMENT ON COLUMN trail.audits.error IS 'why it failed; NULL unless it did';
COMMENT ON COLUMN trail.audits.priority IS 'from -100 to 100, higher goes first';
COMMENT ON COLUMN trail.audits.attempts IS 'how often a worker took it, over both stages';
COMMENT ON COLUMN trail.audits.faults IS
    'attempts that ended in a lost worker or in the audit''s own error';

COMMENT ON VIEW trail.claims IS
    'Every claim with its verdict under its audit''s own policy, and its best evidence for and '
    'against.';
COMMENT ON COLUMN trail.claims.claim_id IS 'number of the claim';
COMMENT ON COLUMN trail.claims.audit_id IS 'its audit';
COMMENT ON COLUMN trail.claims.position IS 'place among the claims of its audit, from 0';
COMMENT ON COLUMN trail.claims.text IS 'what it says';
COMMENT ON COLUMN trail.claims.verdict IS
    'supported, contradicted or unsupported; NULL until the audit is completed';
COMMENT ON COLUMN trail.claims.score IS
    'claim value under the audit''s policy: E - C, E or 1 - C; NULL as verdict';
COMMENT ON COLUMN trail.claims.policy IS 'name of the audit''s policy';
COMMENT ON COLUMN trail.claims.policy_version IS 'version of the audit''s policy';
COMMENT ON COLUMN trail.claims.has_name IS 'whether it holds a name';
COMMENT ON COLUMN trail.claims.has_number IS 'whether it holds a number';
COMMENT ON COLUMN trail.claims.has_date IS 'whether it holds a date';
COMMENT ON COLUMN trail.claims.origin IS
    'llm (the extractor worded it) or sentence (coverage added it)';
COMMENT ON COLUMN trail.claims.part IS
    '0, or which piece of a sentence too long for the encoder it is';
COMMENT ON COLUMN trail.claims.response_start IS 'first character in the response, from 0';
COMMENT ON COLUMN trail.claims.response_end IS 'character after the last one';
COMMENT ON COLUMN trail.claims.response_text IS 'that part of the response';
COMMENT ON COLUMN trail.claims.verified_text IS
    'what the encoder was shown: the claim, after its antecedent sentence if it needs one';
COMMENT ON COLUMN trail.claims.entailment IS
    'highest probability of entailment over the spans that the policy uses';
COMMENT ON COLUMN trail.claims.entailment_chunk IS
    'finest chunk that holds this span, as m/index';
COMMENT ON COLUMN trail.claims.entailment_start IS
    'first character of the span in the source, from 0';
COMMENT ON COLUMN trail.claims.entailment_end IS 'character after the last one';
COMMENT ON COLUMN trail.claims.entailment_text IS
    'the span itself: the best evidence for the claim';
COMMENT ON COLUMN trail.claims.contradiction IS
    'highest probability of contradiction over the same spans';
COMMENT ON COLUMN trail.claims.contradiction_chunk IS
    'finest chunk that holds this span, as m/index';
COMMENT ON COLUMN trail.claims.contradiction_start IS
    'first character of the span in the source, from 0';
COMMENT ON COLUMN trail.claims.contradiction_end IS 'character after the last one';
COMMENT ON COLUMN trail.claims.contradiction_text IS
    'the span itself: the best evidence against the claim';
COMMENT ON COLUMN trail.claims.checked_spans IS
    'spans of the source that the claim was checked against';
COMMENT ON COLUMN trail.claims.batch_id IS 'the audit''s batch';
COMMENT ON COLUMN trail.claims.custom_id IS 'the caller''s name for the audit';
COMMENT ON COLUMN trail.claims.document_id IS 'the audit''s source';
COMMENT ON COLUMN trail.claims.metadata IS 'the caller''s own object';
COMMENT ON COLUMN trail.claims.submitted_at IS 'when the audit was accepted';
COMMENT ON COLUMN trail.claims.month IS 'first day of the month of submission, UTC';

COMMENT ON VIEW trail.chunk_probabilities IS
    'Every probability: one row for each claim and chunk of its source. Ask it about single '
    'audits or claims, or within a month.';
COMMENT ON COLUMN trail.chunk_probabilities.audit_id IS 'the audit';
COMMENT ON COLUMN trail.chunk_probabilities.claim_id IS 'the claim';
COMMENT ON COLUMN trail.chunk_probabilities.position IS 'place of the claim in its audit, from 0';
COMMENT ON COLUMN trail.chunk_probabilities.chunk IS 'name of the chunk, m/index';
COMMENT ON COLUMN trail.chunk_probabilities.granularity IS
    'm: into how many chunks of equally many sentences the source is cut';
COMMENT ON COLUMN trail.chunk_probabilities.chunk_index IS
    'index of the chunk among those of its granularity, from 0';
COMMENT ON COLUMN trail.chunk_probabilities.entailment IS
    'probability that the chunk entails the claim, the highest of its spans; NULL where '
    'pre-selection skipped all of them';
COMMENT ON COLUMN trail.chunk_probabilities.neutral IS
    'probability that it does neither; NULL as entailment, and for a chunk of several spans, '
    'where the three need not sum to 1';
COMMENT ON COLUMN trail.chunk_probabilities.contradiction IS
    'probability that it contradicts the claim, the highest of its spans; NULL as entailment';
COMMENT ON COLUMN trail.chunk_probabilities.source_start IS
    'first character of the chunk in the source, from 0';
COMMENT ON COLUMN trail.chunk_probabilities.source_end IS 'character after the last one';
COMMENT ON COLUMN trail.chunk_probabilities.text IS 'the chunk itself';
COMMENT ON COLUMN trail.chunk_probabilities.spans IS
    '1, or how many overlapping windows cover a chunk that the encoder cannot read at once';
COMMENT ON COLUMN trail.chunk_probabilities.document_id IS 'the source';
COMMENT ON COLUMN trail.chunk_probabilities.month IS
    'first day of the month of submission, UTC: a condition on it leaves other partitions unread';

COMMENT ON VIEW trail.scorings IS
    'Every completed audit under every policy it has a score for: its own, and those it was '
    're-scored with.';
COMMENT ON COLUMN trail.scorings.audit_id IS 'the audit';
COMMENT ON COLUMN trail.scorings.policy_id IS 'the policy version';
COMMENT ON COLUMN trail.scorings.policy IS 'name of the policy';
COMMENT ON COLUMN trail.scorings.policy_version IS 'version of the policy';
COMMENT ON COLUMN trail.scorings.is_default IS 'whether the audit was submitted with it';
COMMENT ON COLUMN trail.scorings.score IS
    'response score from 0 to 1; NULL without a checkable claim';
COMMENT ON COLUMN trail.scorings.label IS 'faithful or hallucinated; NULL where score is';
COMMENT ON COLUMN trail.scorings.deciding_claim IS
    'position of the claim that decided; NULL where all claims count';
COMMENT ON COLUMN trail.scorings.supported IS 'claims with this verdict under the policy';
COMMENT ON COLUMN trail.scorings.contradicted IS 'claims with this verdict under the policy';
COMMENT ON COLUMN trail.scorings.unsupported IS 'claims with this verdict under the policy';
COMMENT ON COLUMN trail.scorings.scored_at IS 'when this score was stored';
COMMENT ON COLUMN trail.scorings.batch_id IS 'the audit''s batch';
COMMENT ON COLUMN trail.scorings.custom_id IS 'the caller''s name for the audit';
COMMENT ON COLUMN trail.scorings.metadata IS 'the caller''s own object';
COMMENT ON COLUMN trail.scorings.submitted_at IS 'when the audit was accepted';

COMMENT ON VIEW trail.claim_scorings IS
    'Every claim of a completed audit under every policy that the audit has a score for.';
COMMENT ON COLUMN trail.claim_scorings.claim_id IS 'the claim';
COMMENT ON COLUMN trail.claim_scorings.audit_id IS 'its audit';
COMMENT ON COLUMN trail.claim_scorings.position IS 'place among the claims of its audit, from 0';
COMMENT ON COLUMN trail.claim_scorings.policy_id IS 'the policy version';
COMMENT ON COLUMN trail.claim_scorings.policy IS 'name of the policy';
COMMENT ON COLUMN trail.claim_scorings.policy_version IS 'version of the policy';
COMMENT ON COLUMN trail.claim_scorings.is_default IS 'whether the audit was submitted with it';
COMMENT ON COLUMN trail.claim_scorings.text IS 'what the claim says';
COMMENT ON COLUMN trail.claim_scorings.score IS 'claim value under the policy';
COMMENT ON COLUMN trail.claim_scorings.verdict IS
    'supported, contradicted or unsupported, under the policy';
COMMENT ON COLUMN trail.claim_scorings.submitted_at IS 'when the audit was accepted';

COMMENT ON VIEW trail.daily_rates IS
    'How many completed audits are flagged, by day of submission, policy and models.';
COMMENT ON COLUMN trail.daily_rates.day IS 'day of submission, UTC';
COMMENT ON COLUMN trail.daily_rates.policy IS 'name of the policy';
COMMENT ON COLUMN trail.daily_rates.policy_version IS 'version of the policy';
COMMENT ON COLUMN trail.daily_rates.is_default IS
    'whether the audits were submitted with it; false for re-scored ones';
COMMENT ON COLUMN trail.daily_rates.extractor IS 'name of the extractor';
COMMENT ON COLUMN trail.daily_rates.extractor_revision IS 'revision of the extractor';
COMMENT ON COLUMN trail.daily_rates.nli_model IS 'name of the encoder';
COMMENT ON COLUMN trail.daily_rates.nli_revision IS 'revision of the encoder';
COMMENT ON COLUMN trail.daily_rates.audits IS 'completed audits';
COMMENT ON COLUMN trail.daily_rates.scored IS
    'of these, audits with a score: what all rates are over';
COMMENT ON COLUMN trail.daily_rates.no_checkable_claims IS 'the others';
COMMENT ON COLUMN trail.daily_rates.hallucinated IS 'audits that are flagged';
COMMENT ON COLUMN trail.daily_rates.flag_rate IS
    'hallucinated / scored; NULL when nothing is scored';
COMMENT ON COLUMN trail.daily_rates.mean_score IS 'mean response score of the scored audits';
COMMENT ON COLUMN trail.daily_rates.supported IS 'claims with this verdict';
COMMENT ON COLUMN trail.daily_rates.contradicted IS 'claims with this verdict';
COMMENT ON COLUMN trail.daily_rates.unsupported IS 'claims with this verdict';

COMMENT ON VIEW trail.batches IS 'Every batch with its counts, as they are now.';
COMMENT ON COLUMN trail.batches.batch_id IS 'number of the batch';
COMMENT ON COLUMN trail.batches.created_at IS 'when it was accepted';
COMMENT ON COLUMN trail.batches.cancelled_at IS 'when it was cancelled';
COMMENT ON COLUMN trail.batches.finished_at IS
    'when the last of its audits ended; NULL while any waits';
COMMENT ON COLUMN trail.batches.status IS
    'in_progress, completed (whatever the audits came to) or cancelled';
COMMENT ON COLUMN trail.batches.total IS
    'audits; the sum of queued, extracted, completed, failed and cancelled';
COMMENT ON COLUMN trail.batches.queued IS 'audits that wait for extraction';
COMMENT ON COLUMN trail.batches.extracted IS 'audits that wait for verification';
COMMENT ON COLUMN trail.batches.running IS 'of those that wait, audits that a worker holds';
COMMENT ON COLUMN trail.batches.completed IS 'audits with a result';
COMMENT ON COLUMN trail.batches.failed IS 'audits that could not be made';
COMMENT ON COLUMN trail.batches.cancelled IS 'audits that were cancelled';
COMMENT ON COLUMN trail.batches.hallucinated IS 'completed audits that are flagged';
COMMENT ON COLUMN trail.batches.faithful IS 'completed audits that are not';
COMMENT ON COLUMN trail.batches.no_checkable_claims IS 'completed audits without a score';
COMMENT ON COLUMN trail.batches.flag_rate IS
    'hallucinated / (hallucinated + faithful); NULL when nothing is scored';
COMMENT ON COLUMN trail.batches.mean_score IS 'mean response score of the scored audits';
COMMENT ON COLUMN trail.batches.supported IS 'claims with this verdict';
COMMENT ON COLUMN trail.batches.contradicted IS 'claims with this verdict';
COMMENT ON COLUMN trail.batches.unsupported IS 'claims with this verdict';

COMMENT ON VIEW trail.policies IS 'Every version of every policy; a version never changes.';
COMMENT ON COLUMN trail.policies.policy_id IS 'number of the version';
COMMENT ON COLUMN trail.policies.policy IS 'name of the policy';
COMMENT ON COLUMN trail.policies.policy_version IS
    'sixteen hexadecimal digits that change with any rule';
COMMENT ON COLUMN trail.policies.is_newest IS
    'whether new audits that name the policy get this version';
COMMENT ON COLUMN trail.policies.claim_value IS
    'what a claim is worth: contrastive (E - C), entailment (E) or contradiction (1 - C)';
COMMENT ON COLUMN trail.policies.aggregation IS 'fedscore, min, mean, weighted or row-max';
COMMENT ON COLUMN trail.policies.granularities IS
    'granularities that count as evidence; NULL for all';
COMMENT ON COLUMN trail.policies.margin IS 'what a claim value must lie above to be supported';
COMMENT ON COLUMN trail.policies.entailment_threshold IS
    'what the best E must reach for supported';
COMMENT ON COLUMN trail.policies.contradiction_threshold IS
    'what the best C must reach for contradicted';
COMMENT ON COLUMN trail.policies.response_threshold IS
    'score from which a response is labelled hallucinated';
COMMENT ON COLUMN trail.policies.rules IS 'all rules as one object';
COMMENT ON COLUMN trail.policies.created_at IS 'when it was stored';

COMMENT ON VIEW trail.reviews IS
    'Every review of a claim. None is ever changed; the latest of a reviewer counts. Reviews stay '
    'when the audit is deleted.';
COMMENT ON COLUMN trail.reviews.review_id IS 'number of the review';
COMMENT ON COLUMN trail.reviews.claim_id IS 'the claim';
COMMENT ON COLUMN trail.reviews.audit_id IS 'its audit';
COMMENT ON COLUMN trail.reviews.claim_text IS 'what the claim said';
COMMENT ON COLUMN trail.reviews.verdict IS 'verdict on the claim when it was reviewed';
COMMENT ON COLUMN trail.reviews.reviewer IS 'who reviewed it';
COMMENT ON COLUMN trail.reviews.reviewer_verdict IS
    'what the reviewer says it should be: supported, contradicted or unsupported';
COMMENT ON COLUMN trail.reviews.agrees IS 'whether the two are the same';
COMMENT ON COLUMN trail.reviews.is_latest IS
    'whether it is this reviewer''s latest on this claim';
COMMENT ON COLUMN trail.reviews.note IS 'what the reviewer wrote about it';
COMMENT ON COLUMN trail.reviews.created_at IS 'when it was stored';

COMMENT ON VIEW trail.reviewed_claims IS
    'Every reviewed claim with the votes of its reviewers, the latest of each.';
COMMENT ON COLUMN trail.reviewed_claims.claim_id IS 'the claim';
COMMENT ON COLUMN trail.reviewed_claims.audit_id IS 'its audit';
COMMENT ON COLUMN trail.reviewed_claims.claim_text IS 'what the claim said';
COMMENT ON COLUMN trail.reviewed_claims.verdict IS 'verdict on the claim when it was reviewed';
COMMENT ON COLUMN trail.reviewed_claims.reviewers IS 'how many reviewed it';
COMMENT ON COLUMN trail.reviewed_claims.agreeing IS 'how many of them agree with the verdict';
COMMENT ON COLUMN trail.reviewed_claims.supported_votes IS 'how many say supported';
COMMENT ON COLUMN trail.reviewed_claims.contradicted_votes IS 'how many say contradicted';
COMMENT ON COLUMN trail.reviewed_claims.unsupported_votes IS 'how many say unsupported';
COMMENT ON COLUMN trail.reviewed_claims.majority_verdict IS
    'what more than half of the reviewers say; NULL without such a majority';
COMMENT ON COLUMN trail.reviewed_claims.last_reviewed_at IS
    'when the latest of these reviews was stored';

COMMENT ON VIEW trail.rejected_claims IS
    'Every generated line that the response does not assert, and why. Rejected lines are never '
    'audited.';
COMMENT ON COLUMN trail.rejected_claims.audit_id IS 'the audit';
COMMENT ON COLUMN trail.rejected_claims.number IS
    'place among the rejected lines of the audit, from 0';
COMMENT ON COLUMN trail.rejected_claims.text IS 'the line';
COMMENT ON COLUMN trail.rejected_claims.reason IS
    'word, name, number, negation, qualifier, order, recombined, duplicate, truncated, over_cap '
    'or not_checkable';
COMMENT ON COLUMN trail.rejected_claims.detail IS 'what exactly is not in the response';
COMMENT ON COLUMN trail.rejected_claims.extraction_mode IS 'covered or paper';
COMMENT ON COLUMN trail.rejected_claims.extractor IS 'name of the model that generated it';
COMMENT ON COLUMN trail.rejected_claims.extractor_revision IS 'its commit or file digest';
COMMENT ON COLUMN trail.rejected_claims.batch_id IS 'the audit''s batch';
COMMENT ON COLUMN trail.rejected_claims.custom_id IS 'the caller''s name for the audit';
COMMENT ON COLUMN trail.rejected_claims.submitted_at IS 'when the audit was accepted';

COMMENT ON VIEW trail.unaudited_sentences IS
    'Every sentence of a response that is no claim, and why.';
COMMENT ON COLUMN trail.unaudited_sentences.audit_id IS 'the audit';
COMMENT ON COLUMN trail.unaudited_sentences.number IS
    'place among the unaudited sentences of the audit, from 0';
COMMENT ON COLUMN trail.unaudited_sentences.text IS 'the sentence';
COMMENT ON COLUMN trail.unaudited_sentences.reason IS
    'greeting, question, refusal, lead_in, code, table_rule or no_words; in mode paper also '
    'not_extracted: an assertion that nobody checked';
COMMENT ON COLUMN trail.unaudited_sentences.response_start IS
    'first character in the response, from 0';
COMMENT ON COLUMN trail.unaudited_sentences.response_end IS 'character after the last one';
COMMENT ON COLUMN trail.unaudited_sentences.extraction_mode IS 'covered or paper';
COMMENT ON COLUMN trail.unaudited_sentences.extractor IS 'name of the extractor';
COMMENT ON COLUMN trail.unaudited_sentences.extractor_revision IS 'its commit or file digest';
COMMENT ON COLUMN trail.unaudited_sentences.batch_id IS 'the audit''s batch';
COMMENT ON COLUMN trail.unaudited_sentences.custom_id IS 'the caller''s name for the audit';
COMMENT ON COLUMN trail.unaudited_sentences.submitted_at IS 'when the audit was accepted';

COMMENT ON VIEW trail.generations IS
    'Every call of the extractor: one for each window of a response.';
COMMENT ON COLUMN trail.generations.audit_id IS 'the audit';
COMMENT ON COLUMN trail.generations.number IS 'place among the calls for the audit, from 0';
COMMENT ON COLUMN trail.generations.response_start IS
    'first character of the window in the response, from 0';
COMMENT ON COLUMN trail.generations.response_end IS 'character after the last one';
COMMENT ON COLUMN trail.generations.finish IS
    'why it ended: stop, length (cut at the token limit), repetition, cap or none (no language '
    'model)';
COMMENT ON COLUMN trail.generations.parsed IS 'whether the output could be read as claims';
COMMENT ON COLUMN trail.generations.prompt_tokens IS 'tokens read';
COMMENT ON COLUMN trail.generations.output_tokens IS 'tokens written';
COMMENT ON COLUMN trail.generations.extraction_mode IS 'covered or paper';
COMMENT ON COLUMN trail.generations.extractor IS 'name of the extractor';
COMMENT ON COLUMN trail.generations.extractor_revision IS 'its commit or file digest';
COMMENT ON COLUMN trail.generations.batch_id IS 'the audit''s batch';
COMMENT ON COLUMN trail.generations.custom_id IS 'the caller''s name for the audit';
COMMENT ON COLUMN trail.generations.submitted_at IS 'when the audit was accepted';

COMMENT ON VIEW trail.models IS 'Every model that computed, once for each distinct provenance.';
COMMENT ON COLUMN trail.models.model_id IS 'number of the provenance';
COMMENT ON COLUMN trail.models.kind IS 'extractor or nli';
COMMENT ON COLUMN trail.models.name IS 'hub id, or name of the file or folder';
COMMENT ON COLUMN trail.models.backend IS 'onnx, torch, llama or sentences';
COMMENT ON COLUMN trail.models.revision IS 'its commit or file digest; empty for no model';
COMMENT ON COLUMN trail.models.dtype IS 'numeric form it computed in';
COMMENT ON COLUMN trail.models.device IS 'what it ran on';
COMMENT ON COLUMN trail.models.provenance IS 'all of this and the versions of its libraries';
COMMENT ON COLUMN trail.models.created_at IS 'when it was first seen';

COMMENT ON VIEW trail.documents IS 'Every source, stored once however often it was submitted.';
COMMENT ON COLUMN trail.documents.document_id IS 'number of the document';
COMMENT ON COLUMN trail.documents.sha256 IS 'SHA-256 of its UTF-8 bytes, hexadecimal';
COMMENT ON COLUMN trail.documents.characters IS 'its length';
COMMENT ON COLUMN trail.documents.text IS 'the source, exactly as given';
COMMENT ON COLUMN trail.documents.created_at IS 'when it was first submitted';

COMMENT ON VIEW trail.document_readings IS
    'How each source was read: one row for each splitter, tokenizer and limit.';
COMMENT ON COLUMN trail.document_readings.reading_id IS 'number of the reading';
COMMENT ON COLUMN trail.document_readings.document_id IS 'the source';
COMMENT ON COLUMN trail.document_readings.splitter IS 'rules that found the sentences';
COMMENT ON COLUMN trail.document_readings.tokenizer IS 'digest of the encoder''s tokenizer';
COMMENT ON COLUMN trail.document_readings.token_limit IS
    'most tokens that the encoder reads at once';
COMMENT ON COLUMN trail.document_readings.sentences IS 'sentences found';
COMMENT ON COLUMN trail.document_readings.unreadable_sentences IS
    'sentences of which the tokenizer keeps nothing';
COMMENT ON COLUMN trail.document_readings.tokens IS 'tokens of the source';
COMMENT ON COLUMN trail.document_readings.unknown_tokens IS
    'of these, tokens that the encoder does not know';
COMMENT ON COLUMN trail.document_readings.spans IS
    'distinct spans that claims are checked against';
COMMENT ON COLUMN trail.document_readings.chunks IS 'chunks over all granularities';
COMMENT ON COLUMN trail.document_readings.windowed_chunks IS
    'chunks that several overlapping windows cover, since the encoder cannot read them at once';

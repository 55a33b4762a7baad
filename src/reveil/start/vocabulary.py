"""Words for columns in English, German, French and Spanish, without accents.

Of a list of *words*, those of six letters or more are also found inside longer ones (Hauptdiagnose, basesalary);
shorter ones must stand alone (age, not wage). *Stems* are the beginnings of words (smok: smoker, smoking) and
are also found at the end of a name that is written in one word (lothinc, atotinc), which is how statisticians name
things. An underscore behind a stem says that it must be the whole word.
"""

from __future__ import annotations

from collections.abc import Sequence

PERSONS = """patient person client customer employee member student subject participant insured individual user
 respondent pat pers kunde kunden mitarbeiter mitglied versicherte versicherten personne cliente paciente persona
 empleado assure salarie proband teilnehmer"""
NUMBERS = "id ids nr no nummer number num nbr key code identifier pseudonym kennung numero"
KEYS = """mrn ssn pseudonym passport reisepass pasaporte passeport socialsecurity sozialversicherungsnummer
 personnummer idcode nhs nir dni nie steuernummer taxid insee_number krankenversichertennummer personalausweis pid
 persnum persnr personid pnr patid patno subjid subjno stnum seqn respid caseid"""
SHORT_KEYS = "nr id no case seq seqn obs pid sid uid subj idnr ident rec num caseno idno indiv"
GENERIC_KEYS = "id uuid guid mrn serial serialno record recordno rowid row index identifier caseid fallnummer seqn"
CONTACTS = """email mail phone telephone telefon telefono tel mobile handy fax address adresse direccion street
 strasse rue calle iban konto kontonummer accountnumber accountno cuenta creditcard kreditkarte tarjeta url website ip
 license_plate kennzeichen"""
NAMES = """name names nom nombre vorname nachname familienname firstname lastname surname fullname prenom apellido
 apellidos"""
NAME_PARTS = f"{NAMES} {PERSONS} first last family given middle full maiden birth famille de doctor arzt medecin"
TEXTS = """note notes notiz notizen comment comments bemerkung bemerkungen anmerkung remark remarks remarque remarques
 kommentar commentaire observacion observaciones nota notas freetext freitext memo description beschreibung
 anamnese"""
CHANGING = """salary salaire gehalt lohn sueldo salario income einkommen revenu ingreso ingresos wage wages medication
 medikament medicament therapy therapie treatment behandlung traitement debt debts schulden deuda symptom symptoms
 health gesundheit mental sante salud condition"""
BIRTHS = "birth dob born geburt geburtsdatum naissance nacimiento birthdate birthday geburtsjahr yob"
EVENTS = """admission admitted aufnahme aufnahmedatum admision discharge discharged entlassung entlassungsdatum alta
 visit besuch visite visita appointment termin encounter episode treatment behandlung interview exam examination
 untersuchung"""
ZIPS = "zip zipcode postcode postal plz postleitzahl postleit cp cap codepostal codigopostal"
PERIODS = """year yr jahr annee ano wave round period month monat quarter quartal release visit time t survey occasion
 week trial session seq term semester season spring fall autumn summer winter"""
ORDERED = "education bildung educacion schooling degree educ school grade"
QUANTITIES = """age alter edad height weight grosse groesse gewicht taille poids altura peso children kinder enfants
 hijos schooling education_num latitude longitude lat lon lng"""
CATEGORIES = """sex gender geschlecht sexe sexo genero race rasse ethnic ethnicity raza etnia herkunft nationality
 nationalit nacionalidad staatsangehorigkeit citizenship marital familienstand etatcivil estadocivil relationship
 country land pays pais region state bundesland province provinz provincia departement county city town stadt ort
 wohnort ville ciudad municipality gemeinde commune municipio district kreis birthplace geburtsort occupation beruf
 profession profesion ocupacion job workclass employer arbeitgeber industry branche education bildung schulabschluss
 educacion degree diplome language sprache langue idioma"""

# What others know, or can see, by stems. Those of race and origin are special all the same (GDPR, article 9).
ORIGIN = """race_ raceth ethnic black white hisp latin asian nonwhite minorit native afam africam caucas indian_
 foreign immig migra nation citizen birthplace herkunft rasse raza etnia wht_ whte blck blk_"""
KNOWN = """old_ older self_ age_ sex_ gender male_ female fem_ man_ woman women men_ marr marit spous single_ divorc
 widow husb wife famsize famil hhsize househ hh_ kid child babies baby teen sib brother sister mother father mom dad
 parent momdad twin dep_ depend educ school coll college degree univers grad_ hsgrad study studi exper tenure yrsexp
 senior occ_ occup prof_ profess job clerical manag service trade constr manuf indust ind_ office sector selfe selfemp
 employ emp_ emplo unemp workst working retired retire farm agric reg_ region north nrth south east west midwest ncent
 northcen northeast smsa msa urban rural city centcity metro town vill county state_ district tract munic block_ ward_
 born birthyear birth_ cohort brthord birthord vet veteran military height ht_ hgt weight hair eye_ lang engl speak
 citizen house housing home own_ owner rent_ renter room car_ vehicle near dist_ distanc yrs_ year"""
# What is private, by subject.
HEALTH = """ill_ illness diagn diag dx_ icd disease krank malad enferm hiv aids sida cancer krebs tumor tumour carcin
 melan
 leuk lymph diabet asthm bronch hepat chol_ cholest hdl ldl trig gluc insul hba bp_ sbp dbp hbp systol diastol
 hypert blutdruck pressure pulse heartr ecg ekg cardi heart herz coeur corazon stroke angina infarct renal kidney
 niere creat bili albumin platelet hemog haemog hgb wbc rbc cd4 viral titer titre symptom fever fieber cough pain
 ache headach ulcer colit allerg hayfev polio infect sepsis pneum tubercul tb_ chronic smok cigs cigar cig_ tobac
 rauch fumeur alcoh alc_ drink drug drogen abuse addict pregn schwang gravid parity gestat prenat npvis bwght lbw
 vlbw birthw bweight apgar omaps fmaps breastf contracep birthcontr birthweight medic meds_ med_ totmed therap
 treat trt_ dose dosage surg operat chemo radia transplant biops stage_ metast relapse remiss surviv death died
 dead_ dth_ deceas mort_ mortal vital hosp icu er_ los_ doctor docvis physician insur health hlth gesund sante_
 salud sick disab behind handic discap mental psych depress anxi stress nerv mood schizo dement suicid bmi obes
 serum urin blood blut gene_ genet geno snp allele mutat dna hla vaccin immun antibod virus bacter malari std_
 gonor chlam syphil hpv herpes condom sexual coit disch itch lesion rash dysur abdom nause vomit diarr diet_
 calor kcal injur injt injd wound burn fract extr_ upextr lowextr lowback trunk_ neck_ occdis ailment remed wellb
 happy happin satisf insomn sleepl edema spider ascit prothrom copper phos_ ast_ alt_ sgot kappa_ lambda_ mgus
 haemophil hemophil gvh_ gvhd censor cens_ lesio tumo histolog cellty celltype karnofsk zdv_ azt_ arv_ bili_ ldh_
 crp_ inr_ egfr transfus donor_ graft uncons coma_ nyha killip afib_ fibril arrhyth heartf chf_ cvd_ mi_ copd
 dialys cath_lab stent_ bypass cirrh fibros alkphos a1c hb_ kreat medik thromb laktat lactat natrium sodium
 kalium potass kalzium calcium ferrit tsh_ psa_ gfr_ ejection karno ecog recur nodes_ estrogen progest estrec
 progrec menop hormon behandl"""
MONEY = """poverty poor_ povert ssi_ re_ bens_ annben salair wage wages salar earn income incom inc_ einkom lohn
 gehalt sueldo revenu ingres pay_ payroll paid_ gain gains capital credit kredit loan debt schuld deuda mortg hypoth
 saving savings checking account balance bill billamt amount amt_ price cost_ costs expend spend charge asset wealth
 networth netw liq liquid pension benef welfare afdc foodst transfer tax_ taxes rentamt premium claim bonus fico bankr
 delinq default hrwage pubrec chist prewage reject approv cosign gdlin risk_ inv_ invest stock ira_ nettfa 401 sub_"""
CRIME = """supervis_ rules_ violat arrest arr_ narr nfarr nparr convict conv_ pcnv felon crime crim_ offen sentenc
 avgsen prison jail inmate custod parole probat recid priors prior_ violen victim murder police warrant delikt straf
 vorstr delit condena tserved served ptime gun_ owngun"""
BELIEF = """konfession vote voted voter votes party_ partei polit attend_ occattend regattend spirit_ spiritual ideol
 bush gore clinton trump obama relig church cath_ cathol protest_ muslim islam jew_ jewish konfes union_ gewerk syndic
 sindic orient gay_ lesbian affair affairs extramar attitud opinion naffairs"""
MERIT = """rank evaluat perform apprais rating_ ratings rate_ score scores gpa grades exam exams marks sat_ act_ iq
 kww test_ tests math read_ reading fired dismiss layoff promot absen attendance skipped"""
SUBJECTS = {
    "health": HEALTH,
    "money": MONEY,
    "crime": CRIME,
    "beliefs, politics, union or private life": BELIEF,
    "how somebody was judged": MERIT,
}
SAMPLE_WEIGHTS = "fnlwgt perwt pweight pwt pwgt samplewt sampweight sweight finalwt wtfinal hhwt wgt weightvar rweight"


def named(own: Sequence[str], vocabulary: str) -> bool:
    """Whether the words of a name have one of these among them; long ones also inside a longer word."""
    joined, known = "".join(own), vocabulary.replace("_", "").split()
    return any(w in own or w == joined or (len(w) > 5 and w in joined) for w in known)


def stemmed(own: Sequence[str], stems: str) -> str | None:
    """The longest of these stems that the words of a name begin with, or that a name written in one word ends with.

    >>> stemmed(("smoke", "yrs"), HEALTH), stemmed(("lothinc",), MONEY), stemmed(("pulse",), KNOWN)
    ('smok', 'inc', None)
    """
    whole = {stem[:-1] for stem in stems.split() if stem.endswith("_")}
    begins = [stem for stem in stems.split() if not stem.endswith("_")]
    hits = [word for word in own if word in whole]
    hits += [stem for stem in begins for word in own if word.startswith(stem)]
    hits += [stem for stem in {*whole, *begins} for word in own if 3 <= len(stem) < len(word) and word.endswith(stem)]
    hits += [stem for stem in begins for word in own if len(stem) > 4 and stem in word]
    return max(hits, key=len, default=None)
